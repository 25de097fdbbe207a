//! Pages of HTML as tests read them; the leaderboard's tests share it.

/// Elements and attributes as a strict reader sees them; panics where the page is not well-formed.
pub fn elements(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("a document type");
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a stray > in {:?}", &rest[..at]);
        let end = rest[at..].find('>').expect("a tag that ends") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in order");
            continue;
        }
        let is_void = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name:?}");
        let mut list = Vec::new();
        while !attributes.is_empty() {
            let (key, value) = attributes.split_once("=\"").expect("a quoted value");
            let (value, after) = value.split_once('"').expect("a quoted value");
            assert!(!value.contains('<') && !value.contains('\''), "{value:?}");
            list.push((key.to_string(), value.to_string()));
            attributes = after.trim_start();
        }
        // What is inside is no markup.
        if ["script", "style"].contains(&name) {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("a closed element") + close.len()..];
        } else if !is_void {
            open.push(name.to_string());
        }
        found.push((name.to_string(), list));
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?}");
    found
}
