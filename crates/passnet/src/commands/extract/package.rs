//! The extractor's Python files, carried in this binary.

use passnet_engine::python_files;

pub(in crate::commands) const FILES: &[(&str, &str)] = &python_files![
    "passnet/__init__.py",
    "passnet/extract/__init__.py",
    "passnet/extract/__main__.py",
    "passnet/extract/capture.py",
    "passnet/extract/catalogue/__init__.py",
    "passnet/extract/catalogue/by_class.py",
    "passnet/extract/catalogue/configurations.py",
    "passnet/extract/catalogue/diffusers_configurations.json",
    "passnet/extract/catalogue/diffusers_inputs.py",
    "passnet/extract/catalogue/diffusers_models.py",
    "passnet/extract/catalogue/geometric.py",
    "passnet/extract/catalogue/monai_models.py",
    "passnet/extract/catalogue/open_clip_models.py",
    "passnet/extract/catalogue/protein_models.py",
    "passnet/extract/catalogue/pytorchcv_models.py",
    "passnet/extract/catalogue/recommendation_models.py",
    "passnet/extract/catalogue/segmentation_models.py",
    "passnet/extract/catalogue/tabular_models.py",
    "passnet/extract/catalogue/timm_models.py",
    "passnet/extract/catalogue/torchaudio_models.py",
    "passnet/extract/catalogue/torchvision_models.py",
    "passnet/extract/catalogue/transformers_forms.py",
    "passnet/extract/catalogue/transformers_inputs.py",
    "passnet/extract/catalogue/transformers_models.py",
    "passnet/extract/catalogue/transformers_sizes.json",
    "passnet/extract/catalogue/vit_pytorch_models.py",
    "passnet/extract/catalogue/x_transformers_models.py",
    "passnet/extract/compare.py",
    "passnet/extract/errors.py",
    "passnet/extract/folder.py",
    "passnet/extract/fx_text.py",
    "passnet/extract/job.py",
    "passnet/extract/lazy_init.py",
    "passnet/extract/metadata.py",
    "passnet/extract/model.py",
    "passnet/extract/pool.py",
    "passnet/extract/requirements.txt",
    "passnet/extract/results.py",
];

#[cfg(test)]
mod tests {
    use super::FILES;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_package_is_carried() {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let mut there = BTreeSet::new();
        for folder in ["passnet/extract", "passnet/extract/catalogue"] {
            for item in std::fs::read_dir(python.join(folder)).unwrap() {
                let path = item.unwrap().path();
                if path.is_file() {
                    there.insert(path.strip_prefix(&python).unwrap().display().to_string());
                }
            }
        }
        let carried: BTreeSet<String> = FILES.iter().map(|(name, _)| name.to_string()).collect();
        let missing: Vec<_> = there.difference(&carried).collect();
        assert!(missing.is_empty(), "not carried: {missing:?}");
    }
}
