//! gpusim, linked to `libcudart.so.13`.

fn main() -> std::process::ExitCode {
    gpusim::main()
}
