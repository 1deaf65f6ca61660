//! Names the shared library and, under the `oracle` feature, compiles the C that
//! the tests compare with. A plain build compiles no C.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcolibri_sampler.so.0");
    }
    #[cfg(feature = "oracle")]
    oracle::build();
}

#[cfg(feature = "oracle")]
mod oracle {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    pub fn build() {
        for watched in ["c_tests", "include", "vendor"] {
            println!("cargo::rerun-if-changed={watched}");
        }
        let original = Path::new("vendor/original").exists();
        let mut build = cc::Build::new();
        build
            .std("c11")
            .opt_level(3)
            .flag_if_supported("-ffp-contract=off")
            // A constant's expf would be folded, and not to the host's value.
            .flag("-fno-builtin-expf")
            .warnings(true)
            .files(["c_tests/reference.c", "c_tests/mode.c"]);
        let mut headers = vec!["c_tests/reference.h", "c_tests/mode.h"];
        if original {
            verify();
            build
                .include("vendor/original/c")
                .file("c_tests/original.c");
            headers.push("c_tests/original.h");
            println!("cargo::rustc-cfg=original");
        }
        build.compile("colibri_oracle");
        println!("cargo::rustc-link-lib=m");
        bind(&headers);
    }

    /// The digests that `make vendor` wrote down.
    fn verify() {
        let status = Command::new("sh")
            .args(["vendor/verify.sh", "vendor"])
            .status()
            .expect("sh runs vendor/verify.sh");
        assert!(status.success(), "vendor/: a file is not the pinned one");
    }

    fn bind(headers: &[&str]) {
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let mut builder = bindgen::Builder::default()
            .allowlist_item("(reference|original)_.*")
            .layout_tests(false)
            .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()));
        // libclang without the clang package has no headers of its own.
        if let Ok(gcc) = Command::new("gcc").arg("-print-file-name=include").output() {
            let include = String::from_utf8_lossy(&gcc.stdout);
            builder = builder.clang_args(["-isystem", include.trim()]);
        }
        for header in headers {
            builder = builder.header(*header);
        }
        builder
            .generate()
            .expect("bindgen reads c_tests/*.h")
            .write_to_file(out.join("oracle.rs"))
            .expect("OUT_DIR is writable");
    }
}
