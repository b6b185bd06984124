use super::*;
use proptest::prelude::*;

#[test]
fn a_stubs_symbol_without_its_marks_of_locality_is_the_kernels() {
    let kernel = |stub: &str| kernel_of_stub(stub);
    assert_eq!(kernel("_ZN4deepL4gemmIfEEvPT_"), "_ZN4deep4gemmIfEEvPT_");
    assert_eq!(kernel("_ZL6hiddenPi"), "_Z6hiddenPi");
    assert_eq!(kernel("_Z6vecAddPKfS0_Pfi"), "_Z6vecAddPKfS0_Pfi");
    // in template arguments an `L` begins a number
    assert_eq!(kernel("_ZN2nsL4anonILi8EEEvPi"), "_ZN2ns4anonILi8EEEvPi");
    assert_eq!(kernel("_ZN2ns4L4abEv"), "_ZN2ns4L4abEv");
    assert_eq!(
        (kernel("plain"), kernel("_Z"), kernel("_Z99x")),
        ("plain".into(), "_Z".into(), "_Z99x".into())
    );
}

proptest! {
    #[test]
    fn any_symbol_is_read(symbol in "(_Z)?[NLa-f0-9é_]{0,24}") {
        prop_assert!(kernel_of_stub(&symbol).len() <= symbol.len());
    }
}
