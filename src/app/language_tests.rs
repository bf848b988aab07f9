//! The window in other languages: menus, first steps, cards, a lesson and messages, found by their texts.
//!
//! Invariant: nothing here is looked up in the files of texts: what a user reads is written out. Must not know ids.

use super::drafts::Dialog;
use super::tests::{Window, click, command, press_below, state, step_until, window};
use super::workspace::Workspace;
use crate::base::Diagnostic;
use crate::words::Language;
use egui_kittest::kittest::Queryable;

/// A window whose letters nobody sees: this machine may lack the fonts.
fn unread() -> Window {
    let window = window(None);
    window.ctx.set_missing_glyph_policy(egui::MissingGlyphPolicy::Tofu);
    window
}

/// A window in a language.
fn speaking(language: Language) -> Window {
    let mut window = unread();
    window.state_mut().state.view.language = Some(language);
    window.run_steps(3);
    window
}

fn reads(window: &Window, texts: &[&str]) {
    for text in texts {
        assert!(window.query_all_by_label_contains(text).next().is_some(), "{text}");
    }
}

#[test]
fn menus_first_steps_and_a_lesson_are_chinese() {
    let mut window = speaking(Language::Chinese);
    reads(
        &window,
        &["粘贴或打开 FlexAttention 代码", "观看导览", "逐步课程", "保留: 11.7% 的单元格", "掩码图层", "检查器"],
    );
    click(&mut window, "文件");
    reads(&window, &["另存为…", "未保存的文档…", "最近打开"]);
    click(&mut window, "文件");
    click(&mut window, "逐步课程");
    assert!(state(&window).view.is_at(Workspace::Learn));
    reads(&window, &["边做边学", "逐个 tile 看 FlashAttention"]);
    click(&mut window, "开始：两分钟了解 Maskloom");
    reads(&window, &["第 1 步，共 5 步", "一行是一个查询，一列是一个键。", "打开滑动窗口"]);
    assert!(window.query_by_label_contains("Start").is_none(), "English is left");
}

#[test]
fn menus_first_steps_and_a_lesson_are_hindi_and_the_choice_takes_effect_at_once() {
    let mut window = unread();
    click(&mut window, "View");
    click(&mut window, "Language");
    click(&mut window, "हिन्दी");
    assert_eq!(state(&window).view.language, Some(Language::Hindi));
    reads(&window, &["FlexAttention कोड चिपकाएँ या खोलें", "टूर देखें", "पाठ, क़दम दर क़दम", "11.7% सेल", "मास्क लेयर", "इंस्पेक्टर"]);
    click(&mut window, "संपादन");
    reads(&window, &["पूर्ववत् करें", "लेयर मिटाएँ"]);
    click(&mut window, "संपादन");
    click(&mut window, "पाठ, क़दम दर क़दम");
    click(&mut window, "शुरू करें: ब्लॉक क्या है");
    reads(&window, &["4 में से क़दम 1", "कर्नल अकेली सेल से शुरू नहीं करता।", "स्लाइडिंग विंडो खोलें"]);
    window.check_accessibility();
}

/// A refusal's sentence stands above its English message with the figures; its code stays.
#[test]
fn a_refusal_is_told_in_the_language_with_the_english_figures_below_it() {
    let mut window = speaking(Language::Hindi);
    let why =
        Diagnostic::error("gpu-out-of-memory", "12.5 GiB are needed, 3.1 GiB are free").hint("shorten the sequence");
    window.state_mut().state.tell(why);
    window.run_steps(3);
    reads(&window, &["त्रुटि", "GPU में पर्याप्त मेमोरी नहीं है।", "12.5 GiB are needed, 3.1 GiB are free"]);
    let mut english = speaking(Language::English);
    english.state_mut().state.tell(Diagnostic::error("gpu-out-of-memory", "12.5 GiB are needed"));
    english.run_steps(3);
    reads(&english, &["12.5 GiB are needed"]);
    assert!(english.query_by_label_contains("GPU में").is_none());
}

/// Names that are longer than English ones become a field before they run into their neighbours.
#[test]
fn long_names_make_way_in_a_small_window() {
    for (language, fields, small) in
        [(Language::English, ["Workspace", "Page"], false), (Language::Spanish, ["Espacio de trabajo", "Página"], true)]
    {
        let mut window = speaking(language);
        window.set_size(egui::Vec2::new(800.0, 600.0));
        window.run_steps(4);
        assert_eq!(fields.map(|name| window.query_by_label(name).is_some()), [small; 2], "{language:?}");
        window.check_accessibility();
    }
}

/// Undo and the row of workspaces make room for it.
#[test]
fn the_document_s_name_is_the_last_to_go_from_the_bar() {
    let mut window = speaking(Language::Spanish);
    window.set_size(egui::Vec2::new(1280.0, 720.0));
    window.run_steps(4);
    let name = window.get_by_label("Nombre del documento").rect();
    assert!(name.width() >= 70.0 && name.right() < 1280.0, "{name:?}");
}

/// Every workspace's page has the buttons that move and hide it, however small the window is.
#[test]
fn every_page_can_be_moved_and_hidden_in_a_small_window() {
    use egui::Key::{Num1, Num2, Num3, Num4, Num5, Num6};
    let english = (Language::English, ["Dock", "Hide the side page"]);
    let spanish = (Language::Spanish, ["Acoplar", "Ocultar la página lateral"]);
    for (size, (language, names)) in [
        ([700.0, 500.0], english),
        ([800.0, 600.0], english),
        ([1280.0, 720.0], english),
        ([1600.0, 960.0], english),
        ([800.0, 600.0], spanish),
    ] {
        let mut window = speaking(language);
        window.set_size(size.into());
        window.run_steps(3);
        for key in [Num1, Num2, Num3, Num4, Num5, Num6] {
            command(&mut window, key);
            let there = names.map(|name| window.query_by_label(name).is_some());
            assert_eq!(there, [true; 2], "{size:?} {key:?} {language:?}");
        }
    }
}

/// The choice is kept with the other habits, and a file of an older window has none.
#[test]
fn the_chosen_language_comes_back_at_the_next_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = window(Some(folder.path()));
    first.state_mut().state.view.language = Some(Language::Spanish);
    first.run_steps(2);
    first.state_mut().keep(&egui::Context::default(), true);
    first.state_mut().state.recovery.finish();
    drop(first);
    let again = window(Some(folder.path()));
    reads(&again, &["Archivo", "Lecciones paso a paso"]);
    assert_eq!(serde_json::from_str::<super::view::View>("{}").expect("reads").language, None);
}

/// The pages at the side, with what they offer before anything has run.
#[test]
fn the_pages_race_quality_and_export_are_spanish() {
    let mut window = speaking(Language::Spanish);
    click(&mut window, "Carrera");
    reads(
        &window,
        &["Hacer competir a los backends", "también la retropropagación", "Por longitudes", "Quién corre: "],
    );
    click(&mut window, "Calidad");
    reads(&window, &["¿Qué pierde la máscara?", "Masa conservada", "Abrir una captura…", "Pérdida de la máscara"]);
    click(&mut window, "Exportar");
    reads(&window, &["¿Qué usa usted?", "Solo la máscara", "Mi propio PyTorch"]);
    for english in ["Race the backends", "Mass kept", "What do you use?", "Only the mask"] {
        assert!(window.query_by_label(english).is_none(), "{english}");
    }
    window.check_accessibility();
}

/// A capture's measures, and the legend and the read-out of the canvas.
#[test]
fn dialogs_and_the_canvas_are_chinese() {
    let mut window = speaking(Language::Chinese);
    reads(&window, &["适应", "转到"]);
    assert!(window.query_by_label("掩码画布").is_some() && window.query_by_label("Mask canvas").is_none());
    window.state_mut().state.dialog = Some(Dialog::Jobs);
    window.run_steps(3);
    reads(&window, &["作业", "窗口关闭或线路中断后它们仍会继续。", "移除已结束的", "关闭"]);
    let connect = super::dialogs::connect(&window.state().state);
    window.state_mut().state.dialog = Some(connect);
    window.run_steps(3);
    reads(&window, &["连接 GPU", "启动命令", "通过 ssh 的服务器", "仍无应答则放弃"]);
    window.check_accessibility();
}

/// The help of a pattern and of its parameters, in the inspector and in the menu that adds one.
#[test]
fn a_pattern_is_explained_in_spanish() {
    let mut window = speaking(Language::Spanish);
    let layer = window.state().state.document.layers[0].id;
    window.state_mut().state.focus.layer = Some(layer);
    window.run_steps(3);
    click(&mut window, "Sobre este patrón");
    reads(&window, &["Causal, y como máximo `window` claves, incluida la propia consulta"]);
    let mut english = speaking(Language::English);
    english.state_mut().state.focus.layer = Some(layer);
    english.run_steps(3);
    click(&mut english, "About this pattern");
    reads(&english, &["Causal, and at most `window` keys, the query itself included"]);
    assert!(english.query_by_label_contains("como máximo").is_none());
}

/// What libraries say of the design; their own error messages stay as they are.
#[test]
fn verdicts_are_chinese_and_quoted_messages_english() {
    let mut window = speaking(Language::Chinese);
    window.set_size(egui::Vec2::new(1500.0, 2000.0));
    window.run_steps(3);
    click(&mut window, "竞速");
    press_below(&mut window, "谁接受它（前向和反向）");
    step_until(&mut window, "the table is there", |state| {
        state.session.verdicts.as_ref().is_some_and(|verdicts| verdicts.answer.is_some())
    });
    window.run_steps(3);
    reads(&window, &["块列表；掩码按位存储，mod 编译在内", "flash_attention_2 除因果掩码外不支持任何掩码"]);
    assert!(window.query_by_label_contains("block lists; masks").is_none());
}

/// The English way out stands only where the told one lacks its names and figures.
#[test]
fn a_way_out_that_is_told_whole_is_not_repeated_in_english() {
    let mut window = speaking(Language::Spanish);
    let why = Diagnostic::warning("disk-full", "no space is left");
    let hint = "restart the worker; please report it with the file /tmp/a.txt";
    window.state_mut().state.tell(why.hint(hint));
    window.run_steps(3);
    reads(&window, &["no space is left", "/tmp/a.txt"]);
    assert!(window.query_all_by_label_contains("restart the worker").next().is_none());
}
