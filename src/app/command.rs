//! Every command of the window: its name, its effect, its shortcut. Menus, buttons, the palette and the list of
//! shortcuts are all drawn from this one table.
//!
//! Invariant: one row per command; no shortcut occurs twice (a test checks). Must not know how a command is carried
//! out.

use super::language::words;
use crate::words::Words;
use egui::{Key, KeyboardShortcut, Modifiers};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Which.
    pub command: Command,
    /// Its name on buttons and in the palette, as an id of texts; the part `tip` of it is its effect, in one sentence.
    pub id: &'static str,
    /// Keys, if any.
    pub shortcut: Option<KeyboardShortcut>,
}

macro_rules! commands {
    ($($name:ident: $id:literal, $shortcut:expr;)*) => {
        /// A command without parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $(#[doc = concat!("`", $id, "` of assets/words/en/commands.ftl.")] $name,)*
        }

        const TABLE: &[Spec] = &[
            $(Spec { command: Command::$name, id: $id, shortcut: $shortcut },)*
        ];
    };
}

const fn ctrl(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::COMMAND, key))
}

const fn ctrl_shift(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::COMMAND.plus(Modifiers::SHIFT), key))
}

const fn plain(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::NONE, key))
}

const fn alt(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::ALT, key))
}

commands! {
    New: "command-new", ctrl(Key::N);
    Open: "command-open", ctrl(Key::O);
    Save: "command-save", ctrl(Key::S);
    SaveAs: "command-save-as", ctrl_shift(Key::S);
    SaveRun: "command-save-run", ctrl_shift(Key::R);
    CopyPicture: "command-copy-picture", ctrl_shift(Key::C);
    CopyChart: "command-copy-chart", None;
    CopyCode: "command-copy-code", None;
    SaveHtml: "command-save-html", None;
    Unsaved: "command-unsaved", None;
    OpenSample: "command-open-sample", None;
    SaveRecorder: "command-save-recorder", None;
    NewTab: "command-new-tab", ctrl(Key::T);
    CloseTab: "command-close-tab", ctrl(Key::W);
    NextTab: "command-next-tab", ctrl(Key::PageDown);
    PreviousTab: "command-previous-tab", ctrl(Key::PageUp);
    Quit: "command-quit", ctrl(Key::Q);
    Undo: "command-undo", ctrl(Key::Z);
    Redo: "command-redo", ctrl_shift(Key::Z);
    Run: "command-run", ctrl(Key::Enter);
    RunWhole: "command-run-whole", ctrl_shift(Key::Enter);
    RaceLengths: "command-race-lengths", None;
    Detach: "command-detach", None;
    Jobs: "command-jobs", None;
    Cancel: "command-cancel", ctrl(Key::Period);
    Compile: "command-compile", ctrl(Key::B);
    Examine: "command-examine", None;
    FetchNvrtc: "command-fetch-nvrtc", None;
    PasteCode: "command-paste-code", ctrl_shift(Key::V);
    OpenConfig: "command-open-config", ctrl_shift(Key::O);
    Connect: "command-connect", ctrl_shift(Key::G);
    Gallery: "command-gallery", ctrl(Key::G);
    Tour: "command-tour", None;
    Palette: "command-palette", ctrl(Key::P);
    Shortcuts: "command-shortcuts", plain(Key::F1);
    Messages: "command-messages", ctrl_shift(Key::M);
    ShowDesign: "command-show-design", ctrl(Key::Num1);
    ShowRace: "command-show-race", ctrl(Key::Num2);
    ShowQuality: "command-show-quality", ctrl(Key::Num3);
    ShowCode: "command-show-code", ctrl(Key::Num4);
    ShowExport: "command-show-export", ctrl(Key::E);
    ShowLearn: "command-show-learn", ctrl(Key::Num6);
    ShowParallel: "command-show-parallel", ctrl(Key::Num5);
    SwitchFocus: "command-switch-focus", plain(Key::F6);
    ShowCell: "command-show-cell", ctrl(Key::Num7);
    ShowProblems: "command-show-problems", ctrl(Key::Num8);
    ShowSetup: "command-show-setup", ctrl(Key::Num9);
    ToolPan: "command-tool-pan", plain(Key::V);
    ToolBrush: "command-tool-brush", plain(Key::B);
    ToolLine: "command-tool-line", plain(Key::L);
    ToolEraser: "command-tool-eraser", plain(Key::E);
    ToolRectangle: "command-tool-rectangle", plain(Key::R);
    ToolBand: "command-tool-band", plain(Key::D);
    ToolArea: "command-tool-area", plain(Key::A);
    ToolPolygon: "command-tool-polygon", plain(Key::P);
    ToolLasso: "command-tool-lasso", plain(Key::S);
    KeepArea: "command-keep-area", None;
    DropArea: "command-drop-area", None;
    AddRectangle: "command-add-rectangle", None;
    AddBand: "command-add-band", None;
    AddPainted: "command-add-painted", None;
    AddText: "command-add-text", None;
    AddLinked: "command-add-linked", None;
    AddCurve: "command-add-curve", None;
    AddScoreText: "command-add-score-text", None;
    AddScoreLinked: "command-add-score-linked", None;
    ReadLinked: "command-read-linked", plain(Key::F5);
    DeleteLayer: "command-delete-layer", plain(Key::Delete);
    DuplicateLayer: "command-duplicate-layer", ctrl(Key::D);
    MirrorLayer: "command-mirror-layer", ctrl_shift(Key::T);
    ToggleLayer: "command-toggle-layer", ctrl_shift(Key::E);
    LayerUp: "command-layer-up", alt(Key::ArrowUp);
    LayerDown: "command-layer-down", alt(Key::ArrowDown);
    ZoomIn: "command-zoom-in", None;
    ZoomOut: "command-zoom-out", None;
    FitMask: "command-fit-mask", alt(Key::Home);
    GoToCell: "command-go-to-cell", ctrl(Key::L);
    Patches: "command-patches", plain(Key::G);
    Compare: "command-compare", ctrl_shift(Key::D);
    StopComparing: "command-stop-comparing", None;
    Present: "command-present", plain(Key::F11);
    NextHead: "command-next-head", plain(Key::CloseBracket);
    PreviousHead: "command-previous-head", plain(Key::OpenBracket);
    ToggleLeft: "command-toggle-left", alt(Key::Num1);
    ToggleRight: "command-toggle-right", alt(Key::Num2);
    CanvasOnly: "command-canvas-only", ctrl(Key::Num0);
    SwapSides: "command-swap-sides", None;
    LayersLeft: "command-layers-left", None;
    LayersRight: "command-layers-right", None;
    LayersBelow: "command-layers-below", None;
    PageLeft: "command-page-left", None;
    PageRight: "command-page-right", None;
    PageBelow: "command-page-below", None;
    LargerText: "command-larger-text", ctrl(Key::Plus);
    SmallerText: "command-smaller-text", ctrl(Key::Minus);
    NormalText: "command-normal-text", None;
    ResetLayout: "command-reset-layout", None;
    StartStrip: "command-start-strip", None;
    ThemeSystem: "command-theme-system", None;
    ThemeLight: "command-theme-light", None;
    ThemeDark: "command-theme-dark", None;
}

impl Command {
    /// What the Share menu of the canvas holds.
    pub const SHARE_CANVAS: &[Command] = &[Command::CopyPicture, Command::CopyCode, Command::SaveHtml];
    /// And that of the page at the side.
    pub const SHARE_PAGE: &[Command] = &[Command::CopyChart, Command::CopyCode, Command::SaveHtml];

    /// All commands, in the table's order.
    pub fn all() -> impl Iterator<Item = Command> {
        TABLE.iter().map(|spec| spec.command)
    }

    /// All commands by group, in the table's order; groups by their ids of texts.
    pub fn groups() -> [(&'static str, Vec<Command>); 6] {
        use Command::*;
        let starts = [New, Undo, Run, ShowDesign, ToolPan, ZoomIn];
        let names = ["group-file", "group-edit", "group-run", "group-workspaces", "group-tools", "group-view"];
        let place = |command: Command| command as usize;
        let mut groups = names.map(|name| (name, Vec::new()));
        for command in Command::all() {
            let at = starts.iter().rposition(|start| place(*start) <= place(command)).unwrap_or(0);
            groups[at].1.push(command);
        }
        groups
    }

    /// Its row.
    pub fn spec(self) -> &'static Spec {
        &TABLE[self as usize]
    }

    /// Its name, in these words.
    pub fn named(self, words: &'static Words) -> &'static str {
        words.text(self.spec().id)
    }

    /// Its name.
    pub fn text(self, ctx: &egui::Context) -> &'static str {
        self.named(words(ctx))
    }

    /// Its effect, in one sentence.
    pub fn tip(self, ctx: &egui::Context) -> &'static str {
        words(ctx).text(&format!("{}.tip", self.spec().id))
    }

    /// Its keys as shown.
    pub fn keys(self, ctx: &egui::Context) -> String {
        let keys = self.spec().shortcut.map(|s| ctx.format_shortcut(&s)).unwrap_or_default();
        // as they stand on the keys
        [("OpenBracket", "["), ("CloseBracket", "]"), ("Plus", "+"), ("Minus", "-"), ("Period", ".")]
            .into_iter()
            .fold(keys, |keys, (name, key)| keys.replace(name, key))
    }

    /// Tooltip with the keys behind it.
    pub fn tooltip(self, ctx: &egui::Context) -> String {
        let keys = self.keys(ctx);
        let tooltip = self.tip(ctx);
        if keys.is_empty() { tooltip.to_string() } else { format!("{tooltip} ({keys})") }
    }

    /// Whether what is being typed counts first: it may need all of the document, or take the field away. Those that change the
    /// window's look leave one at the field, and those that take back belong to it.
    pub fn leaves(self) -> bool {
        use Command::*;
        !matches!(
            self,
            Undo | Redo | Cancel | LargerText | SmallerText | NormalText | ThemeSystem | ThemeLight | ThemeDark
        )
    }

    /// Whether it would pass over what is typed and is no value.
    pub fn needs_all(self) -> bool {
        use Command::*;
        matches!(self, Save | SaveAs | Quit | CloseTab | Run | RunWhole | RaceLengths | Detach | Compile)
    }

    /// Whether its keys are what one types: they count only while no text is edited.
    pub fn is_typing(self) -> bool {
        self.spec()
            .shortcut
            .is_some_and(|s| s.modifiers.is_none() && !matches!(s.logical_key, Key::F1 | Key::F5 | Key::F6 | Key::F11))
    }
}

/// Whether the pointer is in the window and over no field for text: keys without modifiers are commands there.
pub(crate) fn is_free(ctx: &egui::Context) -> bool {
    let under = ctx.interaction_snapshot(|under| under.hovered.clone());
    let is_text = |id: &egui::Id| egui::text_edit::TextEditState::load(ctx, *id).is_some();
    ctx.input(|i| i.pointer.has_pointer()) && !under.iter().any(is_text)
}

/// Leaves the field that is typed into, so that its text counts in this frame. Returns whether there is one.
pub(crate) fn leave_field(ctx: &egui::Context) -> bool {
    let field = ctx.memory(|m| m.focused()).filter(|_| ctx.text_edit_focused());
    field.into_iter().for_each(|field| ctx.memory_mut(|m| m.surrender_focus(field)));
    field.is_some()
}

/// Commands whose keys were pressed. Consumes the keys, so that no widget sees them. Keys without modifiers count only
/// on the canvas and where no text is edited, so that typing edits nothing else; the brackets belong to an active brush. While a
/// text field outside the document has the focus, undo and redo belong to it.
pub(crate) fn pressed(ctx: &egui::Context, on_canvas: bool, brush: bool, field_has_undo: bool) -> Vec<Command> {
    let mut specs: Vec<&Spec> = TABLE.iter().filter(|s| s.shortcut.is_some()).collect();
    // Ctrl+Shift+S also matches Ctrl+S: those with more modifiers first
    specs.sort_by_key(|s| std::cmp::Reverse(s.shortcut.map_or(0, |k| modifiers(k.modifiers))));
    let mine = |spec: &&Spec| {
        let undo = matches!(spec.command, Command::Undo | Command::Redo);
        // with a brush the brackets are its width
        let brackets = matches!(spec.command, Command::NextHead | Command::PreviousHead);
        !((brush && brackets) || (!on_canvas && spec.command.is_typing()) || (field_has_undo && undo))
    };
    let mut out = Vec::new();
    ctx.input_mut(|input| {
        for spec in specs.into_iter().filter(mine) {
            if spec.shortcut.is_some_and(|keys| input.consume_shortcut(&keys)) {
                out.push(spec.command);
            }
        }
        // the other habit for redo
        if !field_has_undo && input.consume_key(Modifiers::COMMAND, Key::Y) {
            out.push(Command::Redo);
        }
        // a plus without its shift
        if input.consume_key(Modifiers::COMMAND, Key::Equals) {
            out.push(Command::LargerText);
        }
        // and for the palette
        if input.consume_key(Modifiers::COMMAND, Key::K) {
            out.push(Command::Palette);
        }
    });
    out
}

fn modifiers(m: Modifiers) -> u32 {
    u32::from(m.alt) + u32::from(m.shift) + u32::from(m.command || m.ctrl || m.mac_cmd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Language;

    #[test]
    fn every_command_is_in_one_group_and_no_group_is_empty() {
        let groups = Command::groups();
        assert!(groups.iter().all(|(_, commands)| !commands.is_empty()), "{groups:?}");
        let all: Vec<Command> = groups.into_iter().flat_map(|(_, commands)| commands).collect();
        assert_eq!(all, Command::all().collect::<Vec<_>>());
    }

    #[test]
    fn rows_stand_at_their_place_and_no_two_share_keys_or_names() {
        for (at, spec) in TABLE.iter().enumerate() {
            assert_eq!(spec.command as usize, at);
            let english = Words::of(Language::English);
            let tip = english.text(&format!("{}.tip", spec.id));
            assert!(tip.ends_with('.'), "{}: a tooltip is a sentence", spec.id);
            for other in &TABLE[at + 1..] {
                for language in Language::ALL {
                    let words = Words::of(language);
                    assert_ne!(words.text(spec.id), words.text(other.id), "{language:?}");
                }
                assert!(
                    spec.shortcut.is_none() || spec.shortcut != other.shortcut,
                    "{} and {} share their keys",
                    spec.id,
                    other.id
                );
            }
        }
        let extra = [ctrl(Key::Y), ctrl(Key::K)];
        assert!(TABLE.iter().all(|s| s.shortcut.is_none() || !extra.contains(&s.shortcut)));
    }

    #[test]
    fn more_modifiers_win_and_typing_is_left_alone() {
        let ctx = egui::Context::default();
        let press =
            |key, modifiers| egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers };
        let run = |events: Vec<egui::Event>, typing: bool| {
            let mut found = Vec::new();
            let input = egui::RawInput { events, ..Default::default() };
            let mut output = ctx.run_ui(input, |ui| found.extend(pressed(ui.ctx(), !typing, false, typing)));
            output.textures_delta.clear();
            found
        };
        let shift = Modifiers::COMMAND.plus(Modifiers::SHIFT);
        assert_eq!(run(vec![press(Key::S, shift)], false), [Command::SaveAs]);
        assert_eq!(run(vec![press(Key::S, Modifiers::COMMAND)], true), [Command::Save]);
        assert_eq!(run(vec![press(Key::B, Modifiers::NONE)], false), [Command::ToolBrush]);
        assert_eq!(run(vec![press(Key::B, Modifiers::NONE), press(Key::Z, Modifiers::COMMAND)], true), []);
        assert_eq!(run(vec![press(Key::Y, Modifiers::COMMAND)], false), [Command::Redo]);
    }

    /// The page of shortcuts, as the table has it.
    fn page() -> String {
        let ctx = egui::Context::default();
        ctx.set_os(egui::os::OperatingSystem::Nix);
        let mut out = String::from(
            "# Commands and their keys\n\nWritten from the table in `src/app/command.rs`. `UPDATE_SNAPSHOTS=1 cargo test \
             -p maskloom-app command` writes it anew.\n",
        );
        for (title, commands) in Command::groups() {
            let title = words(&ctx).text(title);
            out.push_str(&format!("\n## {title}\n\n| command | keys | what it does |\n|---|---|---|\n"));
            for command in commands {
                let [text, tip] = [command.text(&ctx), command.tip(&ctx)];
                out.push_str(&format!("| {text} | {} | {tip} |\n", command.keys(&ctx)));
            }
        }
        out
    }

    #[test]
    fn the_page_of_shortcuts_is_that_of_the_table() {
        let path = maskloom_testing::repository().join("docs/shortcuts.md");
        let page = page();
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&path, &page).expect("is written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "UPDATE_SNAPSHOTS=1 cargo test -p maskloom-app command writes {}", path.display());
    }
}
