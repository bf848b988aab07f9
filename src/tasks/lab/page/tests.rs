//! Answers of a desk as a client reads them, against those of the same questions here.

use super::far::{Client, Desk, Heard};
use super::look::{Cells, Keeper, Line, Question};
use super::studies::{self, Outcome, Study};
use crate::base::{BlockSize, Control};
use crate::document::compile::{BuiltIn, compile};
use crate::document::from_document;
use crate::document::model::{Axes, Axis, Document, Settings};
use crate::quality::loss::Shows;
use crate::quality::suggest::{Form, Protect, Target};
use crate::tasks::lab;
use crate::worker::serve::Desk as _;
use std::path::PathBuf;
use std::sync::Arc;
use studies::{Reach, Wish};

fn question(window: usize) -> Question {
    let mut settings = Settings::new(4, 16);
    settings.block_size = BlockSize::square(32);
    let mut made = Document::new("lab", Axes::same(Axis::tokens(512)), settings);
    let form = Form::Window { back: window, ahead: 0, sinks: 4, causal: true };
    made.layers = lab::layers("window", &form, made.axes.lengths().unwrap(), 1).unwrap();
    let problem = from_document(&made, &compile(&made, &BuiltIn)).unwrap();
    let path = PathBuf::from("../../tests/data/captures/lm.safetensors");
    let cells = Some(Cells { q: [0, 64], kv: [0, 32], height: 64, width: 32 });
    let (call, problem, shows) = (None, Some((7, problem)), Shows::Lost);
    Question { path, call, entry: 0, problem, head: None, row: Some(40), shows, cells, more: true }
}

fn here(question: &Question) -> Line {
    Keeper::default().answer(question.clone(), &Control::new()).unwrap().result.unwrap().line.unwrap()
}

#[test]
fn an_answer_from_afar_is_the_one_of_here_and_no_tensor_travels() {
    let (mut client, mut desk) = (Client::default(), Desk::default());
    let mut sizes = Vec::new();
    for window in [40, 90] {
        let asked = question(window);
        let (reported, payloads) = desk.answer(client.look(&asked), &Control::new()).unwrap();
        sizes.push(reported.to_string().len() + payloads.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
        let Heard::Look(answer) = client.heard(reported, &payloads, &asked).unwrap() else { panic!("another answer") };
        let seen = answer.result.unwrap();
        let (far, near) = (seen.line.unwrap(), here(&asked));
        assert_eq!((&far.heads, &far.thumbs, &far.rest), (&near.heads, &near.thumbs, &near.rest));
        assert_eq!((&far.blocks, &far.cells, &far.rows), (&near.blocks, &near.cells, &near.rows));
        assert_eq!((far.row, &far.missed, &far.error), (near.row, &near.missed, &near.error));
        assert_eq!((&far.character, far.efficiency, far.has_v), (&near.character, near.efficiency, true));
        assert!(far.live.is_empty() && seen.file.calls.len() == 2);
        let call = seen.capture.find(Some(&seen.call), None, None).unwrap();
        assert_eq!(seen.capture.head(call, 0, 0).err().unwrap().code, "capture-stays");
    }
    // the header goes once, and all of it is less than one head's q, k and v: 3 x 512 x 16 x 4 bytes
    assert!(sizes[1] < sizes[0] && sizes[1] < 3 * 512 * 16 * 4, "{sizes:?}");
}

#[test]
fn studies_from_afar_are_those_of_here_also_on_a_worker_that_was_started_anew() {
    let asked = question(40);
    let capture = Arc::new(lab::open(&asked.path).unwrap());
    let call = capture.calls()[0].key.clone();
    let problem = asked.problem.as_ref().map(|(_, problem)| problem);
    let wish = Wish { reach: Reach::Mass(0.9), protect: Protect::default(), most_masks: 2 };
    for study in [Study::Proposals(wish), Study::Routers(Target::Blocks(0.3)), Study::Atlas] {
        let heads = here(&asked).live;
        let of = studies::Question { number: 3, capture: capture.clone(), call: call.clone(), entry: 0, heads, study };
        let near = studies::Keeper::default().answer(&of, &Control::new()).unwrap().result.unwrap();
        let ask = Client::study(&asked.path, problem, &of);
        let (reported, payloads) = Desk::default().answer(ask, &Control::new()).unwrap();
        let Heard::Study(far) = Client::default().heard(reported, &payloads, &asked).unwrap() else {
            panic!("another")
        };
        assert_eq!((far.number, &far.call), (3, &call));
        match (far.result.unwrap(), near) {
            (Outcome::Proposals(far), Outcome::Proposals(near)) => assert_eq!(far, near),
            (Outcome::Routers(far, layers), Outcome::Routers(near, own)) => assert_eq!((far, layers), (near, own)),
            (Outcome::Atlas(far), Outcome::Atlas(near)) => assert!(far == near && !far.is_empty()),
            (far, near) => panic!("{far:?} {near:?}"),
        }
    }
}

#[test]
fn what_is_no_question_or_no_answer_is_told() {
    let (mut client, mut desk) = (Client::default(), Desk::default());
    let asked = question(40);
    assert_eq!(desk.answer(serde_json::json!({"of": "moon"}), &Control::new()).unwrap_err()[0].code, "protocol-header");
    let stopped = Control::new();
    stopped.cancel();
    assert_eq!(desk.answer(client.look(&asked), &stopped).unwrap_err()[0].code, "cancelled");
    let (reported, mut payloads) = desk.answer(client.look(&asked), &Control::new()).unwrap();
    payloads[0].1.truncate(400);
    assert_eq!(client.heard(reported, &payloads, &asked).err().unwrap().code, "protocol-answer");
    let gone = Question { path: "/no/such/capture.safetensors".into(), ..asked };
    assert!(desk.answer(client.look(&gone), &Control::new()).unwrap_err()[0].message.contains("/no/such"));
}
