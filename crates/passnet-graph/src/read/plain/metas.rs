//! `weight_meta.py` as extraction writes it.

use super::Scanner;
use crate::dtype::{DType, Device};
use crate::read::meta::{CLASS_PREFIXES, Fields, Number, TensorMeta};

/// The metas of a file, if it holds nothing but classes of plain fields.
pub(in crate::read) fn tensor_metas(text: &str) -> Option<Vec<TensorMeta>> {
    let mut scanner = Scanner::new(text)?;
    let mut metas = Vec::new();
    loop {
        scanner.blank_lines();
        if scanner.is_at_end() {
            return Some(metas);
        }
        metas.push(class(&mut scanner)?);
    }
}

fn class(scanner: &mut Scanner<'_>) -> Option<TensorMeta> {
    scanner.take("class ")?;
    let name = scanner.identifier()?;
    // A name with a prefix is no keyword.
    if !CLASS_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    scanner.take(":")?;
    scanner.line_end()?;
    scanner.blank_lines();
    let indentation = scanner.indentation();
    if indentation.is_empty() {
        return None;
    }
    let mut fields = Fields::default();
    loop {
        field(scanner, &mut fields)?;
        scanner.line_end()?;
        scanner.blank_lines();
        match scanner.indentation() {
            "" => return fields.into_meta(name).ok(),
            same if same == indentation => {}
            _ => return None,
        }
    }
}

fn field(scanner: &mut Scanner<'_>, fields: &mut Fields) -> Option<()> {
    let name = scanner.identifier()?;
    scanner.take(" = ")?;
    match name {
        "name" => fields.name = Some(scanner.string()?.to_owned()),
        "original_name" => fields.original_name = Some(scanner.string()?.to_owned()),
        "shape" => {
            let sizes = scanner.items(["[", "]"], |scanner| scanner.int().filter(|n| *n >= 0))?;
            fields.set_shape(sizes)?;
        }
        "dtype" => fields.dtype = Some(DType::from_name(scanner.string()?)?),
        "device" => fields.device = Some(Device::from_name(scanner.string()?)?),
        "mean" => fields.mean = number_or_none(scanner)?.map(Number::as_f64),
        "std" => fields.std = number_or_none(scanner)?.map(Number::as_f64),
        "min_val" => fields.min_val = number_or_none(scanner)?,
        "max_val" => fields.max_val = number_or_none(scanner)?,
        "data" if none(scanner) => fields.data = None,
        "data" => fields.data = Some(scanner.items(["[", "]"], Scanner::number)?),
        _ => return None,
    }
    Some(())
}

fn number_or_none(scanner: &mut Scanner<'_>) -> Option<Option<Number>> {
    if none(scanner) { Some(None) } else { scanner.number().map(Some) }
}

/// The field ends its line, so a longer word that begins like this is refused there.
fn none(scanner: &mut Scanner<'_>) -> bool {
    scanner.take("None").is_some()
}
