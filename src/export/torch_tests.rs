//! The user's own PyTorch runs the exported module and agrees with the reference.

use crate::backends::compare::compare;
use crate::backends::gate::Bars;
use crate::backends::inputs;
use crate::backends::reference::{choose_rows, reference};
use crate::backends::testing::{causal, distance_score, modulo_rows, spec, with_mods};
use crate::backends::torch::{Torch, open};
use crate::base::{BackendName, Control, Device};
use crate::export::module_text;
use crate::problem::Problem;

/// A Python with torch, or a word on stderr.
fn torch() -> Option<Torch> {
    open(None, Device::Cpu, module_text)
        .inspect_err(|why| {
            maskloom_testing::needs::missing(
                "torch",
                &format!("no Python with torch ({}); set MASKLOOM_PYTHON", why.message),
            )
        })
        .ok()
}

/// Both baselines within the float32 bar.
fn check(torch: &Torch, p: &Problem, names: &[BackendName]) {
    let given = inputs::random(p, 5);
    let exact = reference(p, &given, choose_rows(p, u32::MAX), &Control::new()).expect("computed");
    let bars = Bars::flat(&exact, 1e-5, 1e-5, 1e-5);
    for name in names {
        let mut backend = torch.backend(*name).expect("one of its names");
        backend.support(p).expect("supported");
        let mut prepared = backend.prepare(p, &given).expect("prepared");
        let error = compare(p, &prepared.output().expect("it runs"), &exact, &bars).expect("shapes agree");
        assert!(error.passed(), "{}: {error:?}", prepared.kernel());
    }
}

#[test]
fn pytorch_runs_the_exported_mods() {
    let Some(torch) = torch() else { return };
    let both = [BackendName::TorchEager, BackendName::TorchSdpa];
    // top-left causal of unequal lengths; rows that keep nothing; a score mod that only eager can do
    check(&torch, &with_mods(spec(1, 2, 2, 40, 50, 16), Some(causal(0)), None), &both);
    check(&torch, &with_mods(spec(2, 4, 2, 50, 40, 16), Some(modulo_rows(5, 3)), None), &both);
    let scored = with_mods(spec(2, 4, 2, 50, 40, 16), Some(modulo_rows(5, 3)), Some(distance_score()));
    check(&torch, &scored, &both[..1]);
    let refusal = torch.backend(BackendName::TorchSdpa).expect("a backend").support(&scored).unwrap_err();
    assert_eq!(refusal.code, "score-mod-unsupported");
    let flash = torch.backend(BackendName::TorchFlexFlash).expect("a backend").support(&scored).unwrap_err();
    assert_eq!(flash.code, "no-flash-attn-4");
}
