//! The headers in `include/` are what the Rust source says.
//!
//! `UPDATE_HEADERS=1 cargo test --test headers` (`make headers`) rewrites them;
//! without it a stale header fails the test.

use std::path::{Path, PathBuf};
use std::{env, fs};

struct Header {
    file: &'static str,
    guard: &'static str,
    system_includes: &'static [&'static str],
    includes: &'static [&'static str],
    /// The exported items, each in exactly one header.
    items: &'static [&'static str],
    /// What stands above the declarations.
    preamble: &'static str,
}

/// The names of types in C, where they are not Rust's.
const RENAMED: &[(&str, &str)] = &[
    ("Batch", "colibri_batch"),
    ("Error", "colibri_error"),
    ("Info", "colibri_info"),
    ("Memory", "colibri_workspace"),
    ("Params", "colibri_params"),
    ("Path", "colibri_path"),
    ("Rng", "colibri_rng"),
    ("Status", "colibri_status"),
];

/// Every header, and every name that the libraries export.
const HEADERS: &[Header] = &[
    Header {
        file: "argmax_first.h",
        guard: "ARGMAX_FIRST_H",
        system_includes: &[],
        includes: &[],
        items: &["argmax_first"],
        preamble: "",
    },
    Header {
        file: "qwen36_sample.h",
        guard: "QWEN36_SAMPLE_H",
        // Users of the original rely on getting these through it.
        system_includes: &["math.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"],
        includes: &["argmax_first.h"],
        items: &[
            "SampleProb",
            "sample_prob_desc",
            "serve_sample",
            "serve_sample_sorted",
        ],
        preamble: "",
    },
    Header {
        file: "colibri_sampler.h",
        guard: "COLIBRI_SAMPLER_H",
        system_includes: &["stddef.h", "stdint.h"],
        includes: &[],
        items: &[
            "colibri_batch",
            "colibri_error",
            "colibri_info",
            "colibri_params",
            "colibri_params_default",
            "colibri_path",
            "colibri_rng",
            "colibri_rng_seed",
            "colibri_rng_uniform",
            "colibri_sample",
            "colibri_sample_batch",
            "colibri_sampler_version",
            "colibri_status",
            "colibri_strerror",
            "colibri_top_logprobs",
            "colibri_workspace",
            "colibri_workspace_size",
        ],
        preamble: VERSION,
    },
];

/// The version macros, from Cargo.toml as cargo hands it on.
const VERSION: &str = concat!(
    "#define COLIBRI_SAMPLER_VERSION \"",
    env!("CARGO_PKG_VERSION"),
    "\"\n#define COLIBRI_SAMPLER_VERSION_MAJOR ",
    env!("CARGO_PKG_VERSION_MAJOR"),
    "\n#define COLIBRI_SAMPLER_VERSION_MINOR ",
    env!("CARGO_PKG_VERSION_MINOR"),
    "\n#define COLIBRI_SAMPLER_VERSION_PATCH ",
    env!("CARGO_PKG_VERSION_PATCH"),
);

/// Where the items are declared.
const SOURCES: &[&str] = &[
    "src/capi.rs",
    "src/capi/request.rs",
    "src/order.rs",
    "src/request.rs",
    "src/rng.rs",
    "src/sampler.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The text of `header`, as it ought to be.
fn generate(header: &Header) -> String {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    config.include_guard = Some(header.guard.to_owned());
    config.sys_includes = names(header.system_includes);
    config.includes = names(header.includes);
    config.after_includes = Some(header.preamble.to_owned()).filter(|text| !text.is_empty());
    config.export.rename = RENAMED
        .iter()
        .map(|&(rust, c)| (rust.to_owned(), c.to_owned()))
        .collect();
    config.export.include = names(header.items);
    config.export.exclude = HEADERS
        .iter()
        .filter(|other| other.file != header.file)
        .flat_map(|other| names(other.items))
        .collect();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root().join(source));
    }
    let mut text = Vec::new();
    builder
        .generate()
        .expect("cbindgen reads the source")
        .write(&mut text);
    in_c_words(&String::from_utf8(text).unwrap())
}

/// The heading that rustdoc wants above a pointer's rules says nothing in C.
fn in_c_words(text: &str) -> String {
    text.replace(" * # Safety\n *\n", "")
}

#[test]
fn headers_are_fresh() {
    let update = env::var_os("UPDATE_HEADERS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for header in HEADERS {
        let path: PathBuf = root().join("include").join(header.file);
        let wanted = generate(header);
        if fs::read_to_string(&path).is_ok_and(|present| present == wanted) {
            continue;
        }
        if update {
            fs::write(&path, wanted).unwrap();
            println!("wrote {}", path.display());
        } else {
            stale.push(header.file);
        }
    }
    assert!(
        stale.is_empty(),
        "include/: {stale:?} not as the source says; `make headers` (or \
         `UPDATE_HEADERS=1 cargo test --test headers`) rewrites them"
    );
}

#[test]
fn every_item_is_declared_once() {
    let texts: Vec<String> = HEADERS.iter().map(generate).collect();
    for item in HEADERS.iter().flat_map(|header| header.items) {
        let declared = texts
            .iter()
            .flat_map(|text| text.lines())
            .filter(|line| !line.starts_with(" *"))
            .filter(|line| {
                line.contains(&format!(" {item}("))
                    || line.contains(&format!(" *{item}("))
                    || *line == format!("}} {item};")
            })
            .count();
        assert_eq!(declared, 1, "{item}: declared {declared} times");
    }
}

#[test]
fn every_export_stands_in_the_table() {
    for source in SOURCES {
        let text = fs::read_to_string(root().join(source)).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.trim() != "#[unsafe(no_mangle)]" {
                continue;
            }
            let function = lines
                .by_ref()
                .find_map(|line| line.split_once("extern \"C\" fn "))
                .expect("a function after no_mangle")
                .1;
            let name = function.split('(').next().unwrap();
            assert!(
                HEADERS.iter().any(|header| header.items.contains(&name)),
                "{source}: {name} is exported and in no header"
            );
        }
    }
}
