//! Tables of outputs and times: names, verdicts, and conversion of older files.

use super::*;
use crate::problem::result::Outcome;
use serde_json::json;

fn row(name: OutputName, max_abs: f64, allowed: f64) -> OutputError {
    OutputError { from: "a rule".into(), ..OutputError::plain(name, max_abs, allowed) }
}

#[test]
fn names_come_back_and_others_are_refused() {
    use OutputName::{DCapture, DK, DQ, DV, Lse, MaxScores, Out};
    for name in [Out, Lse, MaxScores, DQ, DK, DV, DCapture("table".into()), DCapture("out".into())] {
        assert_eq!(OutputName::try_from(name.to_string()), Ok(name));
    }
    for text in ["", "o", "dcap.", "OUT"] {
        assert!(OutputName::try_from(text.to_string()).is_err(), "{text}");
    }
}

#[test]
fn every_row_is_judged() {
    let of = |outputs| ErrorStats { outputs, rows_checked: 1, rows_total: 1, nan_rows: 0, worst: None };
    let (out, dq) = (row(OutputName::Out, 1e-3, 2e-3), row(OutputName::DQ, 1e-3, 2e-3));
    assert!(of(vec![out.clone(), dq.clone()]).passed());
    assert!(!of(vec![out.clone(), OutputError { max_abs: 3e-3, ..dq.clone() }]).passed());
    let unwritten = of(vec![out.clone(), OutputError { nan_mismatch: 2, ..dq }]);
    assert!(!unwritten.passed() && unwritten.fault().is_some_and(|fault| fault.starts_with("2 elements")));
    assert!(!of(vec![]).passed(), "nothing was compared");
    assert!(!ErrorStats { rows_checked: 0, ..of(vec![out]) }.passed());
}

#[test]
fn version_1_becomes_the_table() {
    let old = json!({
        "max_abs": 2e-3, "relative_rms": 1e-3, "lse_max_abs": 2e-4, "max_scores_max_abs": 3e-4, "nan_mismatch": 0,
        "rows_checked": 7, "rows_total": 9, "allowed": 4e-3, "lse_allowed": 0.0, "max_scores_allowed": 5e-4,
        "allowed_from": "a rule"
    });
    let error: ErrorStats = serde_json::from_value(old.clone()).unwrap();
    let lse = row(OutputName::Lse, 2e-4, LSE_ALLOWED);
    let wanted = [
        OutputError { relative_rms: Some(1e-3), ..row(OutputName::Out, 2e-3, 4e-3) },
        lse,
        row(OutputName::MaxScores, 3e-4, 5e-4),
    ];
    assert_eq!((&*error.outputs, error.rows_checked, error.rows_total), (&wanted[..], 7, 9));
    assert!(error.passed());
    let text = serde_json::to_value(&error).unwrap();
    assert!(text.get("max_abs").is_none() && text["outputs"][1]["name"] == "lse");
    assert_eq!(serde_json::from_value::<ErrorStats>(text).unwrap(), error);
    // wrong then is wrong now
    let mut wrong = old.clone();
    wrong["lse_max_abs"] = json!(2e-3);
    assert!(!serde_json::from_value::<ErrorStats>(wrong).unwrap().passed());
    for missing in ["max_abs", "allowed"] {
        let mut broken = old.clone();
        broken.as_object_mut().unwrap().remove(missing);
        assert!(serde_json::from_value::<ErrorStats>(broken).is_err(), "{missing}");
    }
}

#[test]
fn one_timing_or_none_becomes_a_list() {
    let error = json!({ "outputs": [], "rows_checked": 0, "rows_total": 0 });
    let done = |field: &str, value: serde_json::Value| {
        let mut done = json!({ "outcome": "done", "kernel": "k", "error": error, "artefact": null });
        done[field] = value;
        serde_json::from_value::<Outcome>(done)
    };
    let one = json!({ "samples_ms": [2.0, 4.0], "median_ms": 3.0, "spread": 0.5 });
    let old = done("timing", one.clone()).unwrap();
    assert_eq!(old.forward().map(|timing| timing.median_ms), Some(3.0));
    assert_eq!(done("timing", json!(null)).unwrap().forward(), None);
    let text = serde_json::to_value(&old).unwrap();
    assert_eq!(text["timings"][0]["phase"], "forward");
    assert_eq!(serde_json::from_value::<Outcome>(text).unwrap(), old);
    let mut backward = one;
    backward["phase"] = json!("backward");
    let new = done("timings", json!([backward])).unwrap();
    assert_eq!(new.forward(), None);
    let Outcome::Done { timings, .. } = &new else { panic!() };
    assert_eq!(timings.of(Phase::Backward).map(|timing| timing.samples_ms.len()), Some(2));
    assert!(done("timing", json!(true)).is_err());
}
