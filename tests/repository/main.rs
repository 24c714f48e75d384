//! What the repository holds: layers and names in `src`, crates, claims, committed results, scripts.

mod claims;
mod committed_results;
mod dependencies;
mod fuzz_corpus;
#[cfg(unix)]
mod gpu_check;
mod layers;
#[cfg(target_os = "linux")]
mod luo_results;
mod methods;
mod peers;
#[path = "../common/results.rs"]
mod results;
mod status;

use std::path::Path;

#[test]
fn every_file_of_a_test_program_is_a_module_of_it() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut seen = 0;
    for folder in std::fs::read_dir(tests).unwrap() {
        let folder = folder.unwrap().path();
        let Ok(main) = std::fs::read_to_string(folder.join("main.rs")) else { continue };
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|ending| ending == "rs") && name != "main" {
                assert!(main.contains(&format!("mod {name};\n")), "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}
