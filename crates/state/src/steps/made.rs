//! Loops that were never run, of which it is known where each step begins.

use super::{Account, Anchor, Followed, Follower};
use crate::catalog::{Class, CopyKind};
use crate::model::step::Steps;
use crate::record::{Kind, Record, Taker};
pub(super) const MAIN: u32 = 7;
pub(super) const BACKWARD: u32 = 8;
pub(super) const US: i64 = 1_000;

/// Calls of one process, one behind the other.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) rows: Vec<Record<'static>>,
    pub(super) now: i64,
    pub(super) random: u64,
}

impl Calls {
    pub(super) fn seeded(random: u64) -> Calls {
        Calls {
            random,
            ..Calls::default()
        }
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % limit
    }

    /// About so long.
    pub(super) fn pause(&mut self, us: u64) {
        self.now += (us * 500 + self.below(us * 1000)) as i64;
    }

    pub(super) fn call(&mut self, name: &'static str, class: Class, tid: u32, us: u64) -> &mut Record<'static> {
        let ns = us * 500 + self.below(us * 1000);
        self.rows.push(Record {
            ns: Some(ns),
            tid,
            layer: "driver",
            name,
            class,
            ..Record::new(Kind::Call, self.now, MAIN)
        });
        self.now += ns as i64 + US;
        self.rows.last_mut().unwrap()
    }

    pub(super) fn launch(&mut self, kernel: &'static str, tid: u32) {
        self.call("cuLaunchKernel", Class::Launch, tid, 4).kernel = Some(kernel);
    }

    pub(super) fn launches(&mut self, kernels: &[&'static str], tid: u32) {
        kernels.iter().for_each(|kernel| self.launch(kernel, tid));
    }

    /// A value of a few bytes, waited for.
    pub(super) fn item(&mut self, us: u64) {
        let copy = self.call("cuMemcpyDtoHAsync_v2", Class::Copy, MAIN, 10);
        (copy.direction, copy.bytes) = (Some(CopyKind::DtoH), Some(4));
        self.call("cuStreamSynchronize", Class::Sync, MAIN, us);
    }

    pub(super) fn batch(&mut self) {
        self.pause(800);
        let copy = self.call("cuMemcpyHtoDAsync_v2", Class::Copy, MAIN, 40);
        (copy.direction, copy.bytes) = (Some(CopyKind::HtoD), Some(1 << 20));
    }

    pub(super) fn followed(&self) -> Followed<Account> {
        let mut follower = Follower::default();
        self.rows.iter().for_each(|row| follower.take(row));
        follower.finish()
    }

    pub(super) fn anchor(&self) -> Anchor {
        let followed = self.followed();
        let why = followed.why_none;
        followed
            .cuts
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("{why:?}"))
            .anchor
    }

    pub(super) fn steps(&self) -> Steps {
        self.followed().told(true).found.into_iter().next().expect("steps")
    }
}

pub(super) const LAYER: [&str; 9] = [
    "norm",
    "gemm",
    "softmax",
    "gemm_v",
    "gemm",
    "norm",
    "gemm_up",
    "gelu",
    "gemm_down",
];
const LAYER_BACKWARD: [&str; 12] = [
    "gemm_down_b",
    "gemm_w",
    "gelu_b",
    "gemm_up_b",
    "gemm_w",
    "norm_b",
    "gemm_b",
    "gemm_w",
    "softmax_b",
    "gemm_v_b",
    "norm_b",
    "add",
];

/// A training loop of a transformer.
#[derive(Debug, Clone)]
pub(super) struct Training {
    pub(super) seed: u64,
    pub(super) layers: usize,
    pub(super) steps: u64,
    /// The first steps take ten times as long, and choose among kernels.
    pub(super) warm_up: u64,
    /// The loss is read each so many steps, and kernels of metrics are launched.
    pub(super) item_each: u64,
    /// And there is an evaluation.
    pub(super) evaluation_each: u64,
    /// Forward and backward so many times for one step of the optimizer.
    pub(super) accumulation: u64,
    pub(super) batch_is_copied: bool,
    pub(super) other_thread: bool,
}

impl Training {
    fn forward(&self, calls: &mut Calls) {
        if self.batch_is_copied {
            calls.batch();
        } else {
            calls.pause(800);
        }
        calls.launches(&["embedding", "add"], MAIN);
        (0..self.layers).for_each(|_| calls.launches(&LAYER, MAIN));
        calls.launches(&["norm", "gemm_head", "cross_entropy"], MAIN);
    }

    fn backward(&self, calls: &mut Calls) {
        let tid = if self.other_thread { BACKWARD } else { MAIN };
        calls.launches(&["cross_entropy_b", "gemm_head_b"], tid);
        (0..self.layers).for_each(|_| calls.launches(&LAYER_BACKWARD, tid));
        calls.launches(&["embedding_b"], tid);
    }

    pub(super) fn calls(&self) -> Calls {
        let mut calls = Calls::seeded(self.seed);
        (0..300).for_each(|_| calls.launches(&["normal", "fill"], MAIN));
        for step in 1..=self.steps {
            for _ in 0..self.accumulation {
                self.forward(&mut calls);
                if step <= self.warm_up {
                    (0..40).for_each(|number| calls.launch(["try_1", "try_2", "try_3"][number % 3], MAIN));
                    calls.pause(20_000);
                }
                self.backward(&mut calls);
            }
            (0..6).for_each(|_| calls.launches(&["multi_tensor_adam", "multi_tensor_zero"], MAIN));
            if step.is_multiple_of(self.item_each) {
                calls.launches(&["argmax", "mean"], MAIN);
                calls.item(500);
            }
            if step.is_multiple_of(self.evaluation_each) {
                (0..7).for_each(|_| self.forward(&mut calls));
                calls.item(500);
            }
        }
        calls
    }
}

impl Training {
    /// One with all that programs do, but evaluation.
    pub(super) fn usual() -> Training {
        Training {
            seed: 7,
            layers: 6,
            steps: 60,
            warm_up: 3,
            item_each: 10,
            evaluation_each: 1000,
            accumulation: 1,
            batch_is_copied: true,
            other_thread: true,
        }
    }
}
