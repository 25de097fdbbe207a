//! Links between pages: relative, so that the same page works at any address and on a disk.

use super::route::Route;

/// How a page names others.
#[derive(Debug, Clone)]
pub struct Links {
    /// The way from the page to the site's root.
    root: String,
    is_static: bool,
}

impl Links {
    /// From the page at `from`; files have no addresses of questions.
    pub fn new(from: &Route, is_static: bool) -> Links {
        Links { root: "../".repeat(from.path().matches('/').count()), is_static }
    }

    /// For a page that may stand at any address of a server.
    pub fn absolute() -> Links {
        Links { root: "/".into(), is_static: false }
    }

    pub(crate) fn is_static(&self) -> bool {
        self.is_static
    }

    /// Relative to the page that has the link.
    pub fn to(&self, route: &Route) -> String {
        let file = if self.is_static { "index.html" } else { "" };
        match (self.root.is_empty(), route, self.is_static) {
            (true, Route::Home, false) => "./".into(),
            _ => format!("{}{}{file}", self.root, route.path()),
        }
    }

    /// Something of the server that is no page.
    pub fn to_path(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_any_page_to_any_other() {
        let task = Route::Task("a".into(), 1);
        let run = Route::Run("b".into());
        assert_eq!(Links::new(&task, true).to(&run), "../../../../run/b/index.html");
        assert_eq!(Links::new(&task, false).to(&Route::Home), "../../../../");
        assert_eq!(Links::new(&Route::Home, false).to(&Route::Home), "./");
        assert_eq!(Links::new(&Route::Home, true).to(&run), "run/b/index.html");
        assert_eq!(Links::absolute().to(&run), "/run/b/");
    }
}
