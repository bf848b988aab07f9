//! Merging into the forms of trainers' files.

use crate::trainers::config::*;
use proptest::prelude::*;

fn merged(text: &str) -> String {
    set(text, BackendName::Flex).expect("merges")
}

fn set(text: &str, backend: BackendName) -> Result<String, Diagnostic> {
    let existing = Some(("config/config.json", text.as_bytes()));
    let made = config(&ConfigRequest { backend: Some(backend), existing, ..ConfigRequest::default() })?;
    assert_eq!(made.file.name, "config.json");
    Ok(String::from_utf8(made.file.bytes).expect("text"))
}

fn check(before: &str, after: &str) {
    assert_eq!(merged(before), after);
    // an existing setting stays, byte for byte
    assert_eq!(merged(after), after);
}

#[test]
fn a_value_is_replaced_where_it_stands() {
    check(
        "{\n    \"learning_rate\": 1e-4,\n    \"attention_mechanism\": \"diffusers\",\n    \"seed\": 42\n}\n",
        "{\n    \"learning_rate\": 1e-4,\n    \"attention_mechanism\": \"flex\",\n    \"seed\": 42\n}\n",
    );
    check("{\"--attention_mechanism\" :null}", "{\"--attention_mechanism\" :\"flex\"}");
    check(
        "\u{feff}{\r\n\t\"a\": [1, {\"attention_mechanism\": \"x\"}],\r\n\t\"attention_mechanism\":\t\"sla\"\r\n}",
        "\u{feff}{\r\n\t\"a\": [1, {\"attention_mechanism\": \"x\"}],\r\n\t\"attention_mechanism\":\t\"flex\"\r\n}",
    );
    check("{\"attention\\u005fmechanism\": \"sla\"}", "{\"attention\\u005fmechanism\": \"flex\"}");
}

#[test]
fn an_absent_key_is_written_as_its_neighbours_are() {
    check("{\n  \"seed\": 42\n}\n", "{\n  \"seed\": 42,\n  \"attention_mechanism\": \"flex\"\n}\n");
    check(
        "{\r\n\t\"--seed\": 42,\r\n\t\"--model_type\": \"lora\"\r\n}",
        "{\r\n\t\"--seed\": 42,\r\n\t\"--model_type\": \"lora\",\r\n\t\"--attention_mechanism\": \"flex\"\r\n}",
    );
    check("{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2,\"attention_mechanism\":\"flex\"}");
    check("{\"a\": 1}", "{\"a\": 1, \"attention_mechanism\": \"flex\"}");
    check("{ \"a\": 1 }\n", "{ \"a\": 1, \"attention_mechanism\": \"flex\" }\n");
    check("{}", "{\"attention_mechanism\": \"flex\"}");
    check("{\r\n}\r\n", "{\r\n  \"attention_mechanism\": \"flex\"\r\n}\r\n");
    check(
        "{\n  \"a\": {\"x\": [1, 2]},\n\n  \"b\": [\n    1\n  ]\n}",
        "{\n  \"a\": {\"x\": [1, 2]},\n\n  \"b\": [\n    1\n  ],\n\n  \"attention_mechanism\": \"flex\"\n}",
    );
}

/// A usual training config: MECHANISM is the changed value.
const TRAINING: &str = r#"{
    "--model_family": "wan",
    "--model_type" : "lora",
    "pretrained_model_name_or_path": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
    "learning_rate": 1e-4,
    "--lr_warmup_steps":100,
    "adam_betas": [0.9, 0.999, 1E-8],
    "validation_prompts": ["a \"quoted\" cat", "\u00fcber \\ alles", []],

    "KEY": MECHANISM,
    "--mixed_precision": "bf16", "gradient_checkpointing": true, "push_to_hub": false, "resume": null,
    "tracker": {"attention_mechanism": "not this", "nested": {"deep": [{"--attention_mechanism": -0.5e+3}]}},
    "notes": {}
}"#;

#[test]
fn a_whole_training_file_changes_in_one_value_and_no_other_byte() {
    for key in ["attention_mechanism", "--attention_mechanism"] {
        for end in ["", "\n", "\n\n"] {
            for text in [TRAINING.to_string(), TRAINING.replace('\n', "\r\n"), format!("\u{feff}{TRAINING}")] {
                let with = |value: &str| text.replace("KEY", key).replace("MECHANISM", value) + end;
                check(&with("\"diffusers\""), &with("\"flex\""));
                check(&with("null"), &with("\"flex\""));
            }
        }
    }
    // both spellings: the trainer heeds the last, and that one changes
    let both = |value: &str| {
        let text = TRAINING.replace("KEY", "--attention_mechanism").replace("MECHANISM", value);
        text.replace("{\n    \"--model_family\"", "{\n    \"attention_mechanism\": \"sla\",\n    \"--model_family\"")
    };
    check(&both("\"xformers\""), &both("\"flex\""));
    // absent: one line at the end, spelt as most of the file is
    let absent = TRAINING.replace("    \"KEY\": MECHANISM,\n", "");
    let added = merged(&absent);
    let at = added.find(",\n    \"attention_mechanism\": \"flex\"").expect("added");
    assert_eq!(added.replacen(",\n    \"attention_mechanism\": \"flex\"", "", 1), absent, "{at}");
}

#[test]
fn of_both_spellings_the_last_counts() {
    let text = "{\"attention_mechanism\": \"sla\", \"--attention_mechanism\": \"xformers\"}";
    let existing = Some(("c.json", text.as_bytes()));
    let made = config(&ConfigRequest { existing, backend: Some(BackendName::Sdpa), ..Default::default() }).expect("ok");
    let want = "{\"attention_mechanism\": \"sla\", \"--attention_mechanism\": \"diffusers\"}";
    assert_eq!((made.file.bytes.as_slice(), made.before.as_deref()), (want.as_bytes(), Some("\"xformers\"")));
    assert!(made.notes.iter().any(|n| n.code == "config-both-spellings"));
}

#[test]
fn a_new_file_has_the_one_key() {
    let made =
        config(&ConfigRequest { backend: Some(BackendName::FlashAttention2), ..Default::default() }).expect("ok");
    assert_eq!(made.file.bytes, b"{\n  \"attention_mechanism\": \"flash-attn\"\n}\n");
    let request =
        ConfigRequest { trainer: Trainer::Transformers, backend: Some(BackendName::Flex), ..Default::default() };
    assert_eq!(config(&request).expect("ok").file.bytes, b"{\n  \"attn_implementation\": \"flex_attention\"\n}\n");
}

fn refused(text: &[u8], code: &str, place: &str) {
    let request = ConfigRequest { existing: Some(("config.json", text)), ..Default::default() };
    let why = config(&request).expect_err("refused");
    assert_eq!(why.code, code, "{why}");
    assert!(why.message.contains(place) && why.hint.is_some(), "{why}");
}

#[test]
fn what_no_trainer_could_read_is_refused_with_its_place() {
    refused(b"", "config-not-json", "line 1, column 1");
    refused(b"learning_rate: 1e-4", "config-not-json", "line 1, column 1");
    refused(b"{\n  \"a\": 1,\n}", "config-not-json", "line 3, column 1");
    refused(b"{\"a\": 01}", "config-not-json", "line 1, column 9");
    refused(b"{\"a\": \"\\q\"}", "config-not-json", "line 1, column 8");
    refused(b"{\"a\": 1} x", "config-not-json", "line 1, column 10");
    refused(b"{\"a\": \"\xff\"}", "config-not-json", "line 1, column 8");
    refused("{\"ä\": }".as_bytes(), "config-not-json", "line 1, column 7");
    refused(b"[1, 2]", "config-not-object", "line 1, column 1");
    refused(b"\"text\"\n", "config-not-object", "line 1, column 1");
    refused(b"{\n\"a\": 1,\n\"b\": 2,\n \"a\": 3\n}", "config-duplicate-key", "line 4, column 2");
    let deep = [vec![b'['; 5000], vec![b']'; 5000]].concat();
    refused(&[b"{\"a\": ".as_slice(), &deep, b"}"].concat(), "config-not-json", "nested too deeply");
}

#[test]
fn a_large_file_is_read_in_one_sweep() {
    let mut text = String::from("{\n");
    for n in 0..150_000 {
        text.push_str(&format!("  \"key_{n}\": {{\"value\": [1e-4, \"text with \\\"quotes\\\"\", null, {n}]}},\n"));
    }
    text.push_str("  \"attention_mechanism\": \"diffusers\"\n}\n");
    assert!(text.len() > 9 << 20);
    // `bench language` measures its time
    let after = merged(&text);
    assert_eq!(after.len(), text.len() - "diffusers".len() + "flex".len());
}

#[test]
fn flex_is_never_chosen_unasked_and_its_limits_are_told() {
    let unasked = ConfigRequest { measured: Some(BackendName::Flex), designed: true, ..Default::default() };
    let made = config(&unasked).expect("ok");
    assert_eq!(made.value, "diffusers");
    assert!(made.notes.iter().any(|n| n.code == "config-carries-no-mask"));
    let codes = |text: &str| {
        let existing = Some(("config.json", text.as_bytes()));
        let request =
            ConfigRequest { existing, backend: Some(BackendName::Flex), designed: true, ..Default::default() };
        config(&request).expect("ok").notes.iter().map(|n| n.code.to_string()).collect::<Vec<_>>()
    };
    assert!(codes("{\"model_family\": \"flux\"}").contains(&"config-no-effect".into()));
    assert!(codes("{\"--model_family\": \"wan\"}").contains(&"config-no-mask".into()));
    assert!(codes("{\"model_family\": \"ltxvideo\"}").contains(&"config-uncompiled".into()));
    assert!(codes("{\"mixed_precision\": \"no\"}").contains(&"config-precision".into()));
}

fn space() -> impl Strategy<Value = String> {
    "[ \t]{0,2}(\r?\n[ \t]{0,3})?"
}

fn value() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("true".to_string()),
        Just("1e-4".to_string()),
        Just("-0.50".to_string()),
        "\"[a-zé ,:{}\\]]{0,6}\"",
        Just("\"\\\"\\u00e9\"".to_string()),
    ];
    plain.prop_recursive(3, 12, 3, |inner| {
        let list = (space(), prop::collection::vec(inner.clone(), 0..3))
            .prop_map(|(space, items)| format!("[{space}{}]", items.join(&format!("{space},"))));
        let object = (space(), prop::collection::vec(inner, 0..3)).prop_map(|(space, items)| {
            let members: Vec<_> = items.iter().enumerate().map(|(n, v)| format!("\"k{n}\"{space}:{v}")).collect();
            format!("{{{}{space}}}", members.join(","))
        });
        prop_oneof![list, object]
    })
}

proptest! {
    #![proptest_config(maskloom_testing::cases::kept_beside())]

    #[test]
    fn only_the_one_value_changes(
        members in prop::collection::vec((space(), space(), value()), 0..5),
        place in 0usize..6,
        present in any::<bool>(),
        dashes in any::<bool>(),
        end in space(),
        bom in any::<bool>(),
    ) {
        let key = if dashes { "--attention_mechanism" } else { "attention_mechanism" };
        let text = |setting: Option<&str>| {
            let mut parts: Vec<String> =
                members.iter().enumerate().map(|(n, (a, b, v))| format!("{a}\"key{n}\"{b}:{b}{v}{a}")).collect();
            if let Some(setting) = setting {
                parts.insert(place.min(parts.len()), format!("\n \"{key}\": {setting}"));
            }
            format!("{}{{{}{end}}}{end}", if bom { "\u{feff}" } else { "" }, parts.join(","))
        };
        if present {
            prop_assert_eq!(merged(&text(Some("[null, \"x\"]"))), text(Some("\"flex\"")));
        } else {
            let before = text(None);
            let after = merged(&before);
            let read = |t: &str| serde_json::from_str::<serde_json::Value>(t.trim_start_matches('\u{feff}')).unwrap();
            let mut want = read(&before);
            want["attention_mechanism"] = "flex".into();
            prop_assert_eq!(read(&after), want);
            // the old text, with one piece put in
            let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            prop_assert!(after.ends_with(&before[before.floor_char_boundary(same)..]), "{:?} {:?}", before, after);
        }
    }

    #[test]
    fn any_text_merges_or_explains(text in "[\\[\\]{}\",:a1. \n\\\\-]{0,24}") {
        let python_reads = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
        if python_reads && !text.contains("\"a\"") {
            prop_assert!(set(&text, BackendName::Sdpa).is_ok(), "{}", text);
        }
        if let Ok(after) = set(&text, BackendName::Sdpa) {
            prop_assert!(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&after).is_ok(), "{}", after);
        }
    }
}

fn merged_as(trainer: Trainer, backend: Option<BackendName>, text: &str) -> Result<ConfigExport, Diagnostic> {
    let existing = Some(("config.json", text.as_bytes()));
    config(&ConfigRequest { trainer, backend, existing, designed: true, ..ConfigRequest::default() })
}

#[test]
fn a_choice_that_stands_is_kept_unless_another_is_asked_for() {
    for value in ["flash-attn-3-hub", "native-efficient", "metal-flash-attention", "cudnn"] {
        let text = format!("{{\n  \"attention_mechanism\": \"{value}\"\n}}\n");
        let made = merged_as(Trainer::SimpleTuner, None, &text).expect("merges");
        assert_eq!(made.file.bytes, text.as_bytes());
        assert!(made.notes.iter().any(|n| n.code == "config-kept"));
        let asked = merged_as(Trainer::SimpleTuner, Some(BackendName::Flex), &text).expect("merges");
        assert_eq!(asked.file.bytes, text.replace(value, "flex").as_bytes());
    }
}

#[test]
fn the_older_spelling_of_transformers_is_the_one_that_counts() {
    let text = "{\"model_type\": \"llama\", \"architectures\": [], \"_attn_implementation\": \"eager\"}";
    let made = merged_as(Trainer::Transformers, Some(BackendName::Sdpa), text).expect("merges");
    assert_eq!(made.file.bytes, text.replace("\"eager\"", "\"sdpa\"").as_bytes());
}

#[test]
fn files_that_are_no_trainers_are_refused() {
    for (text, word) in [
        ("{\"_class_name\": \"FluxTransformer2DModel\", \"_diffusers_version\": \"0.42\"}", "diffusers model"),
        ("{\"zero_optimization\": {\"stage\": 2}}", "DeepSpeed"),
        ("{\"eos_token_id\": 2, \"transformers_version\": \"5.23.0\"}", "generation"),
        ("{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\"}", "transformers model"),
        ("{\"_attn_implementation\": \"eager\", \"model_type\": \"llama\"}", "transformers model"),
    ] {
        let refused = merged_as(Trainer::SimpleTuner, None, text).expect_err("refused");
        assert!(refused.code == "config-other-file" && refused.message.contains(word), "{}", refused.message);
    }
}

#[test]
fn comments_yaml_and_toml_keep_every_other_byte() {
    let merged = |name: &str, text: &str, trainer| {
        let request = ConfigRequest {
            trainer,
            backend: Some(BackendName::Sdpa),
            existing: Some((name, text.as_bytes())),
            ..ConfigRequest::default()
        };
        config(&request)
            .map(|made| (made.file.name.clone(), String::from_utf8(made.file.bytes).expect("text"), made.notes))
    };
    let jsonc = "{\n  // who\n  \"model_family\": \"wan\", /* x, y */\n  \"seed\": [1, 2,],\n}\n";
    let (name, text, _) = merged("config.jsonc", jsonc, Trainer::SimpleTuner).expect("read");
    assert_eq!(name, "config.jsonc");
    assert_eq!(text, jsonc.replace("[1, 2,],", "[1, 2,],\n  \"attention_mechanism\": \"diffusers\","));
    // comments alone are kept in a .json too, and it is said that strict readers stop at them
    let commented = jsonc.replace("[1, 2,],\n", "[1, 2]\n");
    let (_, text, notes) = merged("config.json", &commented, Trainer::SimpleTuner).expect("read");
    assert_eq!(text, commented.replace("[1, 2]\n", "[1, 2],\n  \"attention_mechanism\": \"diffusers\"\n"));
    assert!(notes.iter().any(|n| n.code == "config-comments"));
    assert_eq!(merged("config.json", jsonc, Trainer::SimpleTuner).expect_err("a comma").code, "config-not-json");
    let toml = "pretrained = 'x'\n[network]\ndim = 4\n";
    let (_, text, _) = merged("a.toml", toml, Trainer::Transformers).expect("read");
    assert_eq!(text, "pretrained = 'x'\nattn_implementation = \"sdpa\"\n[network]\ndim = 4\n");
    let why = merged("train.env", "A=1\n", Trainer::SimpleTuner).expect_err("a script");
    assert!(why.code == "config-script" && why.render().contains("MASKLOOM_SIDECAR=EXPORT"));
}

/// The codes and the text of what is said about merging into a file.
fn reported(text: &str, backend: Option<BackendName>) -> (Vec<String>, String) {
    let notes = merged_as(Trainer::SimpleTuner, backend, text).expect("merges").notes;
    (notes.iter().map(|n| n.code.to_string()).collect(), notes.iter().map(|n| n.render()).collect())
}

#[test]
fn a_merge_that_leaves_the_trainers_default_says_so() {
    let (codes, text) = reported("{\"model_family\": \"wan\"}", None);
    assert!(codes.contains(&"config-default-left".into()), "{codes:?}");
    assert!(text.contains("`kohaku-fa-auto`") && text.contains("SimpleTuner 4.10.1, 2026-10-18"), "{text}");
    let (codes, _) = reported("{\"model_family\": \"wan\", \"attention_mechanism\": \"cudnn\"}", None);
    assert!(!codes.contains(&"config-default-left".into()), "{codes:?}");
}

#[test]
fn a_value_is_judged_with_its_family_and_the_other_settings() {
    let flex = Some(BackendName::Flex);
    for (text, backend, code, word) in [
        (r#"{"model_family": "cosmos3"}"#, flex, "config-causal-lost", "computes full attention"),
        (
            r#"{"model_family": "minimax_h3", "context_parallel_size": 2, "attention_mechanism": "native-efficient"}"#,
            None,
            "config-context-parallel",
            "`_native_efficient` does not run under context parallel",
        ),
        (
            r#"{"model_family": "minimax_h3", "context_parallel_size": 2}"#,
            flex,
            "config-context-parallel",
            "choose `cudnn` or `native`",
        ),
        (
            r#"{"model_family": "wan", "dynamo_mode": "reduce-overhead", "attention_mechanism": "cudnn"}"#,
            flex,
            "config-cuda-graphs",
            "CUDA graphs",
        ),
        (
            r#"{"model_family": "flux", "attention_mechanism": "sageattention"}"#,
            None,
            "config-validation-only",
            "training is not faster",
        ),
        (
            r#"{"attention_mechanism": "sageattention", "sageattention_usage": "training"}"#,
            None,
            "config-untrained",
            "will not be trained",
        ),
        (r#"{"attention_mechanism": "kohaku-fa"}"#, None, "config-replaces-sdpa", "in the place of PyTorch's SDPA"),
        (r#"{"model_family": "unheard_of"}"#, flex, "config-unknown-family", "unknown to Maskloom"),
    ] {
        let (codes, said) = reported(text, backend);
        assert!(codes.contains(&code.to_string()) && said.contains(word), "{text}: {codes:?}\n{said}");
    }
    // a kernel that SDPA is restricted to acts in a family that calls SDPA itself
    let (codes, _) = reported(r#"{"model_family": "sdxl", "attention_mechanism": "cudnn"}"#, None);
    assert!(!codes.contains(&"config-no-effect".into()), "{codes:?}");
    let (codes, _) = reported(r#"{"model_family": "ernie"}"#, flex);
    assert!(!codes.contains(&"config-unknown-family".into()), "{codes:?}");
}

/// No value of any release is called an error.
#[test]
fn every_value_is_known_and_any_other_is_unknown() {
    for value in known::values().chain(["never-heard-of"]) {
        let text = format!("{{\"attention_mechanism\": \"{value}\"}}");
        let said = trainers::read::TrainerConfig::read("c.json", text.as_bytes()).expect("read").meaning().to_string();
        assert_eq!(said.contains("unknown to Maskloom"), value == "never-heard-of", "{said}");
        assert!(!said.contains("error"), "{said}");
    }
}

/// The file of each program gets that program's own key, one contiguous change for each key; or it is refused.
#[test]
fn each_program_gets_its_own_key() {
    let merged = |name: &str, text: &str, backend| {
        let existing = Some((name, text.as_bytes()));
        let made = config(&ConfigRequest { backend, existing, designed: true, ..ConfigRequest::default() });
        made.map(|m| String::from_utf8(m.file.bytes).expect("text")).map_err(|why| why.code.to_string())
    };
    let sdpa = Some(BackendName::Sdpa);
    let llama = "model_name_or_path: m\nstage: sft # x\nfinetuning_type: lora\nflash_attn: fa2\n";
    assert_eq!(merged("a.yaml", llama, sdpa), Ok(llama.replace("fa2", "sdpa")));
    assert_eq!(merged("a.yaml", llama, None), Ok(llama.to_string()));
    assert_eq!(merged("a.yaml", &llama.replace("flash_attn: fa2\n", ""), sdpa), Ok(llama.replace("fa2", "sdpa")));
    assert_eq!(merged("a.yaml", llama, Some(BackendName::Flex)), Err("config-no-setting".into()));
    let axolotl = "base_model: x # a\nflash_attention: true\ndatasets:\n- path: y\n";
    let off = axolotl.replace("true", "false");
    assert_eq!(merged("axolotl.yml", axolotl, sdpa), Ok(format!("{off}sdp_attention: true\n")));
    assert_eq!(merged("axolotl.yml", axolotl, Some(BackendName::FlashAttention2)), Ok(axolotl.to_string()));
    let kohya = "pretrained_model_name_or_path = 'x'\nnetwork_module = 'networks.lora'\nxformers = true\n";
    assert_eq!(merged("k.toml", kohya, sdpa), Ok(kohya.replace("true", "false") + "sdpa = true\n"));
    assert_eq!(merged("k.toml", kohya, Some(BackendName::Flex)), Err("config-no-setting".into()));
    let musubi = "dit = 'x'\nvae = 'y'\nsdpa = true\n";
    let flash = musubi.replace("true", "false") + "flash_attn = true\n";
    assert_eq!(merged("m.toml", musubi, Some(BackendName::FlashAttention2)), Ok(flash));
    let tuner = "model_family = 'wan'\n[x]\ny = 1\n";
    let added = "model_family = 'wan'\nattention_mechanism = \"diffusers\"\n[x]\ny = 1\n";
    assert_eq!(merged("s.toml", tuner, sdpa), Ok(added.to_string()));
    for (name, text) in [
        ("default_config.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\n"),
        ("dataset.toml", "[general]\nresolution = [960, 544]\n\n[[datasets]]\nvideo_directory = 'v'\n"),
        ("titan.toml", "[job]\nd = 1\n[model]\nname = 'llama3'\n[training]\nsteps = 1\n"),
        ("args.yaml", "pretrained_model_name_or_path: x\ninstance_prompt: a photo\noutput_dir: o\n"),
    ] {
        assert_eq!(merged(name, text, sdpa), Err("config-other-file".into()), "{name}");
    }
}

/// Keys with dashes are keys in YAML too: a second merge finds what the first one wrote.
#[test]
fn dashed_keys_of_yaml_are_found_again() {
    let text = "\"--model_family\": flux\n--resolution: 1024\nlist:\n- a\n";
    let merge = |bytes: &[u8]| {
        let request = ConfigRequest { existing: Some(("config.yaml", bytes)), ..ConfigRequest::default() };
        config(&request).expect("merged").file.bytes
    };
    let once = merge(text.as_bytes());
    let shown = String::from_utf8_lossy(&once);
    assert_eq!(shown.matches("--attention_mechanism").count(), 1, "{shown}");
    assert_eq!(merge(&once), once);
}
