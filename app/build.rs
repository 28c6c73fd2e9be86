//! The migrations of tenants' databases are compiled in; a new file among them must be noticed.

fn main() {
    println!("cargo:rerun-if-changed=../migrations/tenant");
}
