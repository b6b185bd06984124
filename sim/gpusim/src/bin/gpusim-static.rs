//! gpusim with all of the runtime linked in, as most libraries on top of CUDA have it.

fn main() -> std::process::ExitCode {
    std::hint::black_box(cudart::entry_points());
    gpusim::main()
}
