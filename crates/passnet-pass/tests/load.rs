//! Loading: order, helpers, and everything that can be wrong with a folder.

use passnet_pass::load::{Limits, LoadOptions, PassSet, load};
use std::fs;
use std::path::Path;

const PASS: &str = "import torch\n\ndef pattern(x):\n    return torch.relu(x)\n\ndef replacement_args(x):\n    return (x,)\n\ndef wrapper(x):\n    return x\n\ndef replacement_func():\n    return wrapper\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn names(set: &PassSet) -> Vec<&str> {
    set.passes.iter().map(|pass| pass.name.as_str()).collect()
}

fn errors(set: &PassSet, root: &Path) -> Vec<String> {
    let root = root.display().to_string();
    set.errors.iter().map(|error| error.to_string().replace(&root, "DIR")).collect()
}

#[test]
fn input_passes_come_first_and_can_be_replaced_in_place() {
    let input = folder(&[
        ("sorted_input_pass_rule_names.json", "[\"a\", \"b\", \"c\"]"),
        ("a.py", PASS),
        ("b.py", PASS),
        ("c.py", PASS),
    ]);
    let output = folder(&[
        ("sorted_input_pass_rule_names.json", "[\"c\", \"b\", \"a\"]"),
        ("sorted_output_pass_rule_names.json", "[\"d\", \"b\"]"),
        ("b.py", PASS),
        ("d.py", PASS),
    ]);
    let options = LoadOptions { input_dir: Some(input.path().into()), ..Default::default() };
    let set = load(output.path(), &options);
    assert_eq!(names(&set), ["c", "b", "a", "d"]);
    assert_eq!(
        set.passes.iter().map(|p| p.is_input).collect::<Vec<_>>(),
        [true, false, true, false]
    );
    assert!(set.errors.is_empty(), "{:?}", set.errors);
}

#[test]
fn a_different_set_of_input_passes_is_an_error() {
    let input = folder(&[("sorted_input_pass_rule_names.json", "[\"a\"]"), ("a.py", PASS)]);
    let output = folder(&[("sorted_input_pass_rule_names.json", "[\"a\", \"z\"]")]);
    let options = LoadOptions { input_dir: Some(input.path().into()), ..Default::default() };
    let set = load(output.path(), &options);
    assert_eq!(
        errors(&set, output.path()),
        [
            "DIR/sorted_input_pass_rule_names.json: it must list exactly the input passes, in any order \
          (hint: the input passes are a)"
        ]
    );
}

#[test]
fn every_bad_entry_of_the_list_is_located() {
    let folder = folder(&[(
        "sorted_output_pass_rule_names.json",
        "[\n  \"ok\",\n  \"../evil\",\n  7,\n  \"ok\"\n]",
    )]);
    let set = load(folder.path(), &LoadOptions::default());
    let errors = errors(&set, folder.path());
    assert_eq!(errors.len(), 3);
    assert!(errors[0].contains("json:3:3: entry 2: `../evil` is not a file stem"), "{errors:?}");
    assert!(errors[1].contains("entry 3: not a string"));
    assert!(errors[2].contains("entry 4: `ok` is listed twice"));
}

#[test]
fn broken_json_names_line_and_column() {
    let folder = folder(&[("sorted_output_pass_rule_names.json", "[\n \"a\",\n]")]);
    let set = load(folder.path(), &LoadOptions::default());
    assert!(
        errors(&set, folder.path())[0].starts_with("DIR/sorted_output_pass_rule_names.json:3:1")
    );
}

#[test]
fn one_bad_file_does_not_take_the_others_down() {
    let folder = folder(&[
        ("sorted_output_pass_rule_names.json", "[\"good\", \"bad\", \"missing\", \"noise\"]"),
        ("good.py", PASS),
        ("bad.py", "def pattern(x:\n    return x\n"),
    ]);
    fs::write(folder.path().join("noise.py"), b"x = 1\ny = '\xff\xfe'\n").unwrap();
    let set = load(folder.path(), &LoadOptions::default());
    assert_eq!(names(&set), ["good"]);
    let errors = errors(&set, folder.path());
    assert!(errors[0].starts_with("DIR/bad.py:2:5: syntax error"), "{errors:?}");
    assert!(errors[1].starts_with("DIR/missing.py: no such file"), "{errors:?}");
    assert!(errors[2].starts_with("DIR/noise.py:2:6: not valid UTF-8"), "{errors:?}");
}

#[test]
fn helpers_are_found_through_every_form_of_import_and_cycles_end() {
    let folder = folder(&[
        ("sorted_output_pass_rule_names.json", "[\"main\"]"),
        (
            "main.py",
            "from pass_dir.a import f\nfrom .b import g\nimport c\nfrom pass_dir import d\nimport pass_dir.e as e\ndef h():\n    from pass_dir.kernels.norm import k\n",
        ),
        ("a.py", "from pass_dir.b import g\n"),
        ("b.py", "from pass_dir.a import f\n"),
        ("c.py", ""),
        ("d.py", ""),
        ("e.py", ""),
        ("kernels/norm.py", "from .common import z\n"),
        ("kernels/common.py", ""),
        ("unused.py", "def ("),
    ]);
    let set = load(folder.path(), &LoadOptions::default());
    assert!(set.errors.is_empty(), "{:?}", set.errors);
    let mut files: Vec<_> =
        set.program.ids().map(|id| set.program.module(id).name.clone()).collect();
    files.sort();
    assert_eq!(files, ["a", "b", "c", "d", "e", "kernels.common", "kernels.norm", "main"]);
    assert_eq!(set.program.reachable(set.passes[0].module).len(), 8);
}

#[test]
fn a_link_out_of_the_folder_is_refused() {
    let outside = folder(&[("secret.py", PASS)]);
    let folder = folder(&[("sorted_output_pass_rule_names.json", "[\"link\"]")]);
    std::os::unix::fs::symlink(outside.path().join("secret.py"), folder.path().join("link.py"))
        .unwrap();
    let set = load(folder.path(), &LoadOptions::default());
    assert_eq!(errors(&set, folder.path()), ["DIR/link.py: leads out of the pass folder"]);
}

#[test]
fn limits_bound_size_and_number() {
    let limits = Limits { file_bytes: 100, ..Default::default() };
    let big = folder(&[("sorted_output_pass_rule_names.json", "[\"a\"]"), ("a.py", PASS)]);
    let set = load(big.path(), &LoadOptions { limits, ..Default::default() });
    assert!(errors(&set, big.path())[0].contains("more than the limit of 100"));
    let chain: Vec<(String, String)> =
        (0..20).map(|i| (format!("m{i}.py"), format!("import m{}\n", i + 1))).collect();
    let mut files: Vec<(&str, &str)> =
        chain.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    files.push(("sorted_output_pass_rule_names.json", "[\"m0\"]"));
    let many = folder(&files);
    let limits = Limits { modules: 5, ..Default::default() };
    let set = load(many.path(), &LoadOptions { limits, ..Default::default() });
    assert!(errors(&set, many.path())[0].contains("more than 5 files are imported"));
}

#[test]
fn a_single_file_is_a_pass_of_its_own() {
    let folder = folder(&[("solo.py", PASS), ("notes.txt", "")]);
    let set = load(&folder.path().join("solo.py"), &LoadOptions::default());
    assert_eq!(names(&set), ["solo"]);
    let set = load(&folder.path().join("notes.txt"), &LoadOptions::default());
    assert!(set.errors[0].message.contains("neither a folder nor a `.py` file"));
    let set = load(&folder.path().join("nothing.txt"), &LoadOptions::default());
    assert!(set.errors[0].message.contains("no such file or folder"));
}

#[test]
fn a_stem_may_hold_dots() {
    let helper = "def pattern(x):\n    return x.relu()\n";
    let root = folder(&[
        ("sorted_output_pass_rule_names.json", "[\"MulScale_0.1767\"]"),
        ("MulScale_0.1767.py", "from .helper import pattern\n"),
        ("helper.py", helper),
    ]);
    let set = load(root.path(), &LoadOptions::default());
    assert_eq!((names(&set), set.errors.len()), (vec!["MulScale_0.1767"], 0), "{:?}", set.errors);
    assert_eq!(set.program.reachable(set.passes[0].module).len(), 2, "the helper is found");
    for bad in ["..", "a..b", "a.", ".a", "a.py", "a/b.c"] {
        let list = format!("[\"{bad}\"]");
        let root = folder(&[("sorted_output_pass_rule_names.json", &list)]);
        let set = load(root.path(), &LoadOptions::default());
        assert!(errors(&set, root.path())[0].contains("is not a file stem"), "{bad}");
    }
}

/// Files of the own folder are found without `sys.path`, so the lines that add the folder to it are no business of ours.
#[test]
fn lines_that_add_the_own_folder_to_the_path_are_dropped() {
    for setup in [
        "import os\nimport sys\nsys.path.insert(0, os.path.dirname(__file__))",
        "import os, sys\nsys.path.append(os.path.dirname(os.path.abspath(__file__)))",
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).resolve().parent))",
        "import os\nimport sys\nHERE = os.path.dirname(os.path.realpath(__file__))\nif HERE not in sys.path:\n    sys.path.insert(0, HERE)",
        "import os as _os, sys as _sys\n_sys.path.insert(0, _os.path.dirname(__file__))",
        "import sys\nfrom os.path import abspath, dirname as folder\nsys.path.insert(0, folder(abspath(__file__)))",
    ] {
        let text = format!("{setup}\nfrom helper import pattern\n");
        let root = folder(&[("main.py", &text), ("helper.py", "def pattern(x):\n    return x\n")]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        let main = set.program.module(set.passes[0].module);
        assert_eq!(main.syntax.body.len(), 1, "{setup}");
        assert_eq!(set.program.reachable(set.passes[0].module).len(), 2, "{setup}");
    }
    for kept in [
        "import os\nimport sys\nsys.path.insert(0, os.path.dirname(__file__))\nos.remove('x')",
        "import os\nimport sys\nsys.path.insert(0, os.path.dirname(__file__))\ndef f():\n    sys.exit()",
        "import os\nimport sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))",
        "import os\nimport sys\nsys.path.insert(0, os.path.dirname('/'))",
        "import sys\nsys.path.insert(0, '/')",
        "import os\nimport sys",
        "import os\nimport sys\nsys.path.insert(0, os.path.dirname(__file__))\nfrom sys import exit",
    ] {
        let root = folder(&[("main.py", kept)]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        let main = set.program.module(set.passes[0].module);
        assert!(
            main.syntax.body.iter().any(|stmt| stmt.is_import_stmt() || stmt.is_import_from_stmt()),
            "{kept}"
        );
    }
}

/// A file of the own folder that is loaded by its path is a file that is imported.
#[test]
fn files_loaded_by_their_path_are_imported() {
    let loaded =
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n";
    for setup in [
        format!("import importlib.util\nimport os\nspec = importlib.util.spec_from_file_location('any', os.path.join(os.path.dirname(__file__), 'helper.py'))\n{loaded}"),
        format!("import importlib.util, sys\nfrom pathlib import Path\nFILE = str(Path(__file__).parent / 'helper.py')\nspec = importlib.util.spec_from_file_location('any', FILE)\nassert spec is not None and spec.loader is not None\n{}", loaded.replace("\nspec.l", "\nsys.modules['_helper'] = module\nspec.l")),
        "import importlib\nmodule = importlib.import_module('helper')\n".to_string(),
        "from importlib import import_module as load\nmodule = load('pass_dir.helper')\n".to_string(),
        "import os, sys\ntry:\n    import helper as module\nexcept ImportError:\n    sys.path.insert(0, os.path.dirname(__file__))\n    import helper as module\n".to_string(),
    ] {
        let text = format!("{setup}pattern = module.pattern\n");
        let root = folder(&[("main.py", &text), ("helper.py", "def pattern(x):\n    return x\n")]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        let main = set.program.module(set.passes[0].module);
        assert_eq!(main.syntax.body.len(), 2, "{setup}");
        assert_eq!(set.program.reachable(set.passes[0].module).len(), 2, "{setup}");
    }
    for kept in [
        // Not of the folder, not a Python file, another loader.
        format!(
            "import importlib.util\nspec = importlib.util.spec_from_file_location('any', '/tmp/helper.py')\n{loaded}"
        ),
        format!(
            "import importlib.util, os\nspec = importlib.util.spec_from_file_location('any', os.path.join(os.path.dirname(__file__), '../helper.py'))\n{loaded}"
        ),
        format!(
            "import importlib.util, os\nspec = importlib.util.spec_from_file_location('any', os.path.join(os.path.dirname(__file__), 'helper.so'))\n{loaded}"
        ),
        "import importlib\nmodule = importlib.import_module('hel' + 'per')\n".to_string(),
        // In the place of another module.
        format!(
            "import importlib.util, os, sys\nspec = importlib.util.spec_from_file_location('torch', os.path.join(os.path.dirname(__file__), 'helper.py'))\nsys.modules['torch'] = module\n{loaded}"
        ),
        format!(
            "import importlib.util, os, sys\nspec = importlib.util.spec_from_file_location('any', os.path.join(os.path.dirname(__file__), 'helper.py'))\n{}",
            loaded.replace("\nspec.l", "\nsys.modules['torch'] = module\nspec.l")
        ),
    ] {
        let root = folder(&[("main.py", &kept)]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        let main = set.program.module(set.passes[0].module);
        assert!(main.syntax.body.len() > 1, "{kept}");
    }
}

/// Passes that share a module keep it in `sys.modules`; a file is read once anyway.
#[test]
fn files_kept_among_the_modules_are_imported() {
    let head = "import importlib.util as load, os, sys\n";
    let spec = "spec = load.spec_from_file_location(KEY, os.path.join(os.path.dirname(__file__), 'helper.py'))\n";
    let made = "module = load.module_from_spec(spec)\n";
    let (kept, run) = ("sys.modules[KEY] = module\n", "spec.loader.exec_module(module)\n");
    let inside = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let key = "KEY = '__shared_helper_v1'\n";
    let loading = inside(&format!("{spec}{made}{kept}{run}"));
    let function = |end: &str| {
        let first = "'Loads the file once.'\n";
        let known = "if KEY in sys.modules:\n    return sys.modules[KEY]\n";
        let body = inside(&format!("{first}{key}{known}{spec}{made}{run}{kept}{end}\n"));
        format!("{head}def shared():\n{body}")
    };
    let once = format!("{head}{key}if KEY not in sys.modules:\n{loading}");
    let either = format!(
        "{head}{key}if KEY in sys.modules:\n    module = sys.modules[KEY]\nelse:\n{loading}"
    );
    for text in [
        format!("{once}pattern = sys.modules[KEY].pattern\n"),
        format!("{once}else:\n    module = sys.modules[KEY]\npattern = module.pattern\n"),
        format!("{either}pattern = module.pattern\n"),
        format!("{}own = shared()\npattern = own.pattern\n", function("return module")),
        format!("{}pattern = shared().pattern\n", function("return sys.modules[KEY]")),
    ] {
        let helper = "def pattern(x):\n    return x.relu()\n";
        let root = folder(&[("main.py", &text), ("helper.py", helper)]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        let pass = set.passes[0].module;
        assert_eq!(set.program.reachable(pass).len(), 2, "{text}");
        assert!(set.program.module(pass).syntax.body.len() <= 3, "{text}");
    }
    for text in [
        // In the place of another module, or one that somebody else put there.
        format!("{once}pattern = sys.modules[KEY].pattern\n")
            .replace("__shared_helper_v1", "torch"),
        format!("{once}pattern = sys.modules['torch'].pattern\n"),
        // A function that does more than that, takes something, or is used as a value.
        format!("{}pattern = shared().pattern\n", function("print(KEY)\nreturn module")),
        format!("{}pattern = shared().pattern\n", function("return module"))
            .replace("shared():", "shared(x=1):"),
        format!("{}pattern = shared()\nloader = shared\n", function("return module")),
    ] {
        let root = folder(&[("main.py", &text), ("helper.py", "")]);
        let set = load(&root.path().join("main.py"), &LoadOptions::default());
        assert_eq!(set.program.reachable(set.passes[0].module).len(), 1, "{text}");
    }
}

/// Nobody may ever write into the pipe.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_pass() {
    let root = folder(&[]);
    let made = std::process::Command::new("mkfifo").arg(root.path().join("pipe.py")).status();
    assert!(made.is_ok_and(|status| status.success()), "`mkfifo` works here");
    let set = load(&root.path().join("pipe.py"), &LoadOptions::default());
    assert!(errors(&set, root.path())[0].contains("not a plain file"));
}
