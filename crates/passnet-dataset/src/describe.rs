//! Between a graph's files and its entry in the store: what reading the files tells, and the files of a graph that
//! was made here.

use crate::layout;
use crate::store::{Description, Digests, Entry, Kind, Provenance, Variant};
use passnet_graph::print::{print_constraints, print_model, print_tensor_metas};
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::{Diagnostic, FileName, GraphFiles, Identity, identify};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// Describes a graph that comes from outside; its kind and variant are what its path shows.
pub fn describe(files: &GraphFiles) -> Result<Description, Diagnostic> {
    let folder = read_folder(files).map_err(|errors| first(files, errors))?;
    let narrow = |(start, end): &(usize, usize)| -> Option<Range<u32>> {
        Some(u32::try_from(*start).ok()?..u32::try_from(*end).ok()?)
    };
    let mut provenance = Vec::new();
    for (parent, ranges) in &folder.sources {
        let ranges = ranges.iter().map(narrow).collect::<Option<Vec<_>>>().ok_or_else(|| {
            let path = files.file_path(FileName::SubgraphSources);
            Diagnostic::file(path, format!("a range of `{parent}` is beyond any graph"))
        })?;
        provenance.push(Provenance { parent: parent.clone(), ranges });
    }
    let kind = layout::kind_of(&files.path);
    let variant = layout::variant_of(&files.path);
    let identity = identify(&folder.graph, &folder.metas);
    Ok(description(&folder, kind, identity, provenance, variant))
}

fn first(files: &GraphFiles, errors: Vec<Diagnostic>) -> Diagnostic {
    let more = errors.len().saturating_sub(1);
    let mut errors = errors.into_iter();
    let mut error =
        errors.next().unwrap_or_else(|| Diagnostic::file(&files.path, "cannot be read"));
    if more > 0 {
        error.message.push_str(&format!(" (and {more} more errors in this graph)"));
    }
    error
}

fn description(
    folder: &GraphFolder,
    kind: Kind,
    identity: Identity,
    provenance: Vec<Provenance>,
    variant: Option<Variant>,
) -> Description {
    Description {
        kind,
        digests: Digests {
            structure: identity.structure.to_string(),
            literals: identity.literals.to_string(),
            full: identity.full.to_string(),
        },
        // No graph has 2^32 ops: the reader's limits are far below.
        op_count: u32::try_from(folder.graph.op_count()).unwrap_or(u32::MAX),
        provenance,
        variant,
    }
}

/// A graph made here, before it becomes an entry.
#[derive(Debug)]
pub(crate) struct Made<'a> {
    pub(crate) path: String,
    pub(crate) folder: &'a GraphFolder,
    pub(crate) kind: Kind,
    pub(crate) identity: Identity,
    pub(crate) provenance: Vec<Provenance>,
    pub(crate) variant: Option<Variant>,
}

impl Made<'_> {
    pub(crate) fn into_entry(self) -> Entry {
        let files = files_of(self.path, self.folder, &self.provenance);
        let description =
            description(self.folder, self.kind, self.identity, self.provenance, self.variant);
        Entry { graph: files, description }
    }
}

/// The files of a graph in canonical style.
pub(crate) fn files_of(
    path: String,
    folder: &GraphFolder,
    provenance: &[Provenance],
) -> GraphFiles {
    let model = print_model(&folder.graph);
    let hash: String = Sha256::digest(&model).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut files = GraphFiles::new(path)
        .with(FileName::Model, model)
        .with(FileName::WeightMeta, print_tensor_metas(&folder.metas))
        .with(FileName::InputMeta, "")
        .with(FileName::InputTensorConstraints, print_constraints(&folder.constraints))
        .with(FileName::GraphNet, format!("{:#}\n", Value::Object(folder.info.clone())))
        .with(FileName::GraphHash, hash);
    if !provenance.is_empty() {
        files = files.with(FileName::SubgraphSources, sources_json(provenance));
    }
    files
}

/// `subgraph_sources.json`: original graphs and the ranges a piece was found in.
pub fn sources_json(provenance: &[Provenance]) -> String {
    let mut object = Map::new();
    for one in provenance {
        let ranges: Vec<[u32; 2]> = one.ranges.iter().map(|r| [r.start, r.end]).collect();
        object.insert(one.parent.clone(), json!(ranges));
    }
    format!("{}\n", Value::Object(object))
}
