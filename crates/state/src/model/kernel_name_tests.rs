use super::*;
use proptest::prelude::*;

fn short(symbol: &str) -> String {
    KernelName::read(symbol.as_bytes(), false).expect("a name").short
}

#[test]
fn short_names_keep_what_tells_kernels_apart() {
    let names = [
        ("_Z6vecAddPKfS0_Pfi", "vecAdd"),
        ("_Z4gemmIfLi128EEvPKT_S2_PS0_", "gemm<float,128>"),
        ("_ZN5flash9fwd_innerEPKfS1_Pfi", "fwd_inner"),
        ("_Z9reduceSumILi256EEvPKfPfi", "reduceSum<256>"),
        (
            "triton_per_fused_add_cos_relu_sin_sum_0",
            "triton_per_fused_add_cos_relu_sin_sum_0",
        ),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
            "vectorized_elementwise_kernel<4,CUDAFunctor_add<float>,array<char*,3>>",
        ),
        ("_ZN12_GLOBAL__N_14fillIdEEvPT_", "fill<double>"),
        ("_Zbroken", "_Zbroken"),
    ];
    for (symbol, expected) in names {
        assert_eq!(short(symbol), expected);
    }
}

#[test]
fn arguments_of_arguments_are_left_out_where_a_name_is_too_long_with_them() {
    assert_eq!(shortened("k<a::b<c::d<e<float> > > >"), "k<b<d<e<float>>>>");
    let long = "x".repeat(SHORT - 9);
    assert_eq!(
        shortened(&format!("{long}<a::b<c::d<e<float> > > >")),
        format!("{long}<b<d<…>>>")
    );
    assert_eq!(
        shortened("k<(anonymous namespace)::f, {lambda(int)#2}>"),
        "k<f,lambda#2>"
    );
    assert_eq!(shortened("k<(a::kind)1, float (int), (1 > 0)>"), "k<1,float (…),(…)>");
    assert_eq!(shortened("k<unfinished"), "k<unfinished");
}

#[test]
fn a_lambda_keeps_the_function_that_it_lies_in() {
    let of = |function: &str, lambda: u32| {
        shortened(&format!(
            "at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::{function}(\
             at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::{{lambda()#{lambda}}}::operator()() \
             const::{{lambda(float)#1}}>(at::TensorIteratorBase&)::{{lambda(int)#1}}>"
        ))
    };
    assert_eq!(
        of("copy_kernel", 7),
        "elementwise_kernel<128,2,gpu_kernel_impl_nocast<copy_kernel::lambda#3#7#1>::lambda#1>"
    );
    let names = [of("copy_kernel", 7), of("copy_kernel", 8), of("fill_kernel", 7)];
    assert!(
        names[0] != names[1] && names[0] != names[2] && names[1] != names[2],
        "{names:?}"
    );
}

#[test]
fn what_is_left_out_of_a_name_leaves_a_sign_that_is_the_same_in_every_run() {
    let name = "x".repeat(SHORT - 9);
    let deep = |inner: &str| short(&format!("_Z{}{name}I1aI1bI1cI{inner}EEEEvv", name.len()));
    let (float, double) = (deep("f"), deep("d"));
    let left = format!("{name}<a<b<…>>>~");
    assert!(
        float.starts_with(&left) && double.starts_with(&left),
        "{float} {double}"
    );
    assert_ne!(float, double);
    assert_eq!(float, deep("f"));
    assert_eq!(sign("gemm"), 0x673f_f971_efc1_2bc3);
}

#[test]
fn names_that_were_shortened_to_one_can_be_told_apart() {
    let name = |symbol: &str| KernelName::read(symbol.as_bytes(), false).expect("a name");
    let (one, other) = (name("_ZN1a4copyEPf"), name("_ZN1b4copyEPf"));
    assert_eq!((one.short.as_str(), other.short.as_str()), ("copy", "copy"));
    let other = other.told_apart(|short| short == "copy");
    assert_eq!(other.short, "b::copy");
    let third = other.told_apart(|short| ["copy", "b::copy"].contains(&short));
    assert!(third.short.starts_with("b::copy~"), "{}", third.short);
    assert_eq!(third.clone().told_apart(|_| true), third);
}

/// What PyTorch 2 launches for additions, multiplications and copies that are no whole vectors.
#[test]
fn kernels_of_pytorch_that_differ_in_an_inner_type_alone_say_which() {
    let of = |functor: &str| {
        let scope = format!("ZNS0_22gpu_kernel_impl_nocastI{functor}EEvRNS_18TensorIteratorBaseERKT_EUliE_");
        short(&format!("_ZN2at6native18elementwise_kernelILi128ELi2E{scope}EEviT1_"))
    };
    let outer = |inner: &str| format!("elementwise_kernel<128,2,gpu_kernel_impl_nocast<{inner}>::lambda#1>");
    for (functor, shown) in [
        ("NS0_15CUDAFunctor_addIfEE", "CUDAFunctor_add<float>"),
        ("NS0_15CUDAFunctor_addIdEE", "CUDAFunctor_add<double>"),
        ("NS0_15CUDAFunctor_addIN3c104HalfEEE", "CUDAFunctor_add<Half>"),
    ] {
        assert_eq!(of(functor), outer(shown));
    }
    let multiply = |unary: &str| {
        let functor = "fffNS0_15binary_internal10MulFunctorIfEE";
        of(&format!("NS0_{}{unary}I{functor}EE", unary.len()))
    };
    let names = ["AUnaryFunctor", "BUnaryFunctor"].map(multiply);
    assert!(
        names[0] != names[1] && names[0].contains("AUnaryFunctor<…>"),
        "{names:?}"
    );
    let copy = |number: u32| {
        let scope = "direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE";
        let symbol = format!(
            "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23{scope}{number}_clEvEUlfE_EEvS4_RKT_EUliE_EEviT1_"
        );
        short(&symbol)
    };
    assert!(copy(5).contains("direct_copy_kernel_cuda::lambda#3#7#1"), "{}", copy(5));
    assert_ne!(copy(5), copy(6));
}

#[test]
fn a_full_name_has_its_parameters() {
    let name = KernelName::read(b"_Z6vecAddPKfS0_Pfi", false).expect("a name");
    assert_eq!(name.full, "vecAdd(float const*, float const*, float*, int)");
}

#[test]
fn what_is_no_identifier_is_no_name() {
    for bytes in [&b"\x1b[2J"[..], b"two words", b"1st", b"", "größe".as_bytes(), b"a\nb"] {
        assert_eq!(KernelName::read(bytes, false), None);
    }
}

#[test]
fn a_name_that_goes_on_says_so() {
    let name = KernelName::read(&[b'x'; 4095], true).expect("a name");
    assert!(name.symbol.ends_with('…') && name.short.contains("x…~"));
    assert_eq!(name.short.chars().count(), SHORT + 5);
}

/// Each substitution doubles what it stands for.
#[test]
fn a_name_that_stands_for_an_endless_one_is_shown_as_it_is() {
    let symbol = ["_Z1fI1aI"].into_iter().chain(["S_S_I"; 40]).collect::<String>();
    assert!(short(&symbol).len() <= 4 * SHORT);
    let nested = format!("_Z{}", "N".repeat(4000));
    assert!(short(&nested).starts_with("_ZN"));
}

proptest! {
    #[test]
    fn any_bytes_are_a_short_name_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(name) = KernelName::read(&bytes, false) {
            prop_assert!(name.short.chars().count() <= SHORT + 5);
        }
    }

    #[test]
    fn any_mangled_looking_name_is_read(tail in "[A-Za-z0-9_]{0,120}") {
        let name = KernelName::read(format!("_Z{tail}").as_bytes(), false).expect("a name");
        prop_assert!(name.short.chars().count() <= SHORT + 5);
    }

    #[test]
    fn any_text_has_a_short_form(text in "\\PC{0,80}") {
        prop_assert!(shortened(&text).len() <= 2 * text.len() + 16);
    }
}
