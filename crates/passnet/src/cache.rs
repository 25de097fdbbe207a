//! Where we keep what can be made again.

use std::path::PathBuf;

/// Where we keep what can be made again.
pub fn cache_folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = named("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    root.join("passnet")
}
