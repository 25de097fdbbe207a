//! What a file does only when it is started as a program: `if __name__ == "__main__":`.

use super::ast::{self, visitor::Visitor};

/// Removes what stands under `if __name__ == "__main__":` at the top level of a file. Whoever imports the file never
/// gets there, so tests may stand there; and what is defined there exists for nobody else.
///
/// A file that binds `__name__` itself keeps all of its statements: there the condition may hold after all.
pub fn drop_program(module: &mut ast::ModModule) {
    if module.body.iter().any(is_guard) && !binds_name(&module.body) {
        module.body.iter_mut().for_each(empty_guard);
        module.body.retain(|stmt| !is_guard(stmt) || has_other_branch(stmt));
    }
}

/// `if __name__ == "__main__":`, whichever side the text stands on.
fn is_guard(stmt: &ast::Stmt) -> bool {
    let ast::Stmt::If(block) = stmt else { return false };
    let ast::Expr::Compare(compare) = &*block.test else { return false };
    let ([ast::CmpOp::Eq], [right]) = (&*compare.ops, &*compare.comparators) else { return false };
    let is_name = |expr: &ast::Expr| matches!(expr, ast::Expr::Name(name) if name.id == "__name__");
    let is_main = |expr: &ast::Expr| matches!(expr, ast::Expr::StringLiteral(text) if text.value.to_str() == "__main__");
    let left = &*compare.left;
    (is_name(left) && is_main(right)) || (is_main(left) && is_name(right))
}

fn empty_guard(stmt: &mut ast::Stmt) {
    if is_guard(stmt)
        && let ast::Stmt::If(block) = stmt
    {
        block.body = Default::default();
    }
}

/// Importing the file runs the branches after the guard.
fn has_other_branch(stmt: &ast::Stmt) -> bool {
    matches!(stmt, ast::Stmt::If(block) if !block.elif_else_clauses.is_empty())
}

fn binds_name(body: &[ast::Stmt]) -> bool {
    struct Binds(bool);
    impl<'a> Visitor<'a> for Binds {
        fn visit_expr(&mut self, expr: &'a ast::Expr) {
            if let ast::Expr::Name(name) = expr {
                self.0 |= name.id == "__name__" && !name.ctx.is_load();
            }
            ast::visitor::walk_expr(self, expr);
        }

        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            self.0 |= match stmt {
                ast::Stmt::FunctionDef(function) => function.name.as_str() == "__name__",
                ast::Stmt::ClassDef(class) => class.name.as_str() == "__name__",
                ast::Stmt::Global(global) => global.names.iter().any(|name| name == "__name__"),
                _ => false,
            };
            ast::visitor::walk_stmt(self, stmt);
        }

        fn visit_alias(&mut self, alias: &'a ast::Alias) {
            self.0 |= alias.asname.as_ref().unwrap_or(&alias.name).as_str() == "__name__";
        }

        fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
            let ast::ExceptHandler::ExceptHandler(inner) = handler;
            self.0 |= inner.name.as_ref().is_some_and(|name| name.as_str() == "__name__");
            ast::visitor::walk_except_handler(self, handler);
        }

        fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
            let name = match pattern {
                ast::Pattern::MatchAs(capture) => capture.name.as_ref(),
                ast::Pattern::MatchStar(capture) => capture.name.as_ref(),
                ast::Pattern::MatchMapping(capture) => capture.rest.as_ref(),
                _ => None,
            };
            self.0 |= name.is_some_and(|name| name.as_str() == "__name__");
            ast::visitor::walk_pattern(self, pattern);
        }
    }
    let mut binds = Binds(false);
    body.iter().for_each(|stmt| binds.visit_stmt(stmt));
    binds.0
}

#[cfg(test)]
mod tests {
    use super::drop_program;
    use crate::syntax::{Source, ast, parse};

    /// The names of functions that are left.
    fn left(text: &str) -> Vec<String> {
        fn collect(body: &[ast::Stmt], names: &mut Vec<String>) {
            for stmt in body {
                match stmt {
                    ast::Stmt::FunctionDef(function) => names.push(function.name.to_string()),
                    ast::Stmt::If(block) => {
                        collect(&block.body, names);
                        let clauses = block.elif_else_clauses.iter();
                        clauses.for_each(|clause| collect(&clause.body, names));
                    }
                    _ => {}
                }
            }
        }
        let mut module = parse(&Source::new("pass.py", text)).unwrap();
        drop_program(&mut module);
        let mut names = Vec::new();
        collect(&module.body, &mut names);
        names
    }

    #[test]
    fn what_only_a_program_runs_is_dropped() {
        for test in ["__name__ == \"__main__\"", "'__main__' == __name__"] {
            let text =
                format!("def a(): pass\nif {test}:\n    def b(): pass\nelse:\n    def c(): pass\n");
            assert_eq!(left(&text), ["a", "c"], "{test}");
        }
    }

    #[test]
    fn what_an_import_may_reach_stays() {
        for text in [
            "if __name__ != '__main__':\n    def b(): pass\n",
            "if __name__ == 'main':\n    def b(): pass\n",
            "if __name__ == '__main__' or True:\n    def b(): pass\n",
            "__name__ = '__main__'\nif __name__ == '__main__':\n    def b(): pass\n",
            "import os as __name__\nif __name__ == '__main__':\n    def b(): pass\n",
            "for __name__ in ['__main__']: pass\nif __name__ == '__main__':\n    def b(): pass\n",
            "[__name__ := '__main__']\nif __name__ == '__main__':\n    def b(): pass\n",
            "match '__main__':\n    case __name__: pass\nif __name__ == '__main__':\n    def b(): pass\n",
        ] {
            assert_eq!(left(text), ["b"], "{text}");
        }
    }
}
