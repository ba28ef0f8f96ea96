//! Transforms allocate nothing once planned. In a test binary of its own, because it replaces the allocator.

use num_complex::Complex;
use ocsc::Real;
use ocsc::testing::Fourier;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: hands every call on to the system's allocator unchanged; the counter is a plain thread-local number.
#[expect(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn transforms<T: Real>(axes: [usize; 3], corner: [usize; 3]) {
    let fourier = Fourier::<T>::new(axes);
    let mut scratch = fourier.scratch();
    let mut map = vec![T::one(); fourier.n_pixels()];
    let mut small = vec![T::one(); corner.iter().product()];
    let mut spectrum = vec![Complex::new(T::zero(), T::zero()); fourier.n_freqs()];
    let before = ALLOCATIONS.get();
    for _ in 0..3 {
        fourier.forward(&map, &mut spectrum, &mut scratch);
        fourier.inverse(&mut spectrum, &mut map, &mut scratch);
        fourier.forward_padded(&small, corner, &mut spectrum, &mut scratch);
        fourier.inverse_cropped(&mut spectrum, corner, &mut small, &mut scratch);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "{axes:?}");
}

#[test]
fn planned_transforms_allocate_nothing() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert!(ALLOCATIONS.get() > before, "the counter counts");
    // Powers of two, mixed radices, and primes, which take other algorithms (Rader, Bluestein).
    for axes in [[1, 1, 64], [1, 1, 67], [1, 100, 100], [1, 13, 37], [1, 47, 46], [3, 8, 10], [5, 7, 11]] {
        transforms::<f64>(axes, axes.map(|n| n.div_ceil(2)));
        transforms::<f32>(axes, axes.map(|n| n.div_ceil(2)));
    }
}
