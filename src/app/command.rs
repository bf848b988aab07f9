//! Every command of the window: its name, its effect, its shortcut. Menus, buttons, the palette and the list of
//! shortcuts are all drawn from this one table.
//!
//! Invariant: one row per command; no shortcut occurs twice (a test checks). Must not know how a command is carried
//! out.

use egui::{Key, KeyboardShortcut, Modifiers};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Which.
    pub command: Command,
    /// Its name on buttons and in the palette.
    pub text: &'static str,
    /// Its effect, in one sentence.
    pub tooltip: &'static str,
    /// Keys, if any.
    pub shortcut: Option<KeyboardShortcut>,
}

macro_rules! commands {
    ($($name:ident: $text:literal, $tooltip:literal, $shortcut:expr;)*) => {
        /// A command without parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $(#[doc = $tooltip] $name,)*
        }

        const TABLE: &[Spec] = &[
            $(Spec { command: Command::$name, text: $text, tooltip: $tooltip, shortcut: $shortcut },)*
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
    New: "New", "Starts an empty document that keeps every cell.", ctrl(Key::N);
    Open: "Open…", "Opens a document, FlexAttention code, a run file or a trainer's config.json.", ctrl(Key::O);
    Save: "Save", "Saves the document.", ctrl(Key::S);
    SaveAs: "Save as…", "Saves the document under another name.", ctrl_shift(Key::S);
    SaveRun: "Save the run…", "Saves the last run: environment, document, every sample and error.", ctrl_shift(Key::R);
    CopyPicture: "Copy the picture", "Copies the canvas with its rulers as a picture, as it is shown.", ctrl_shift(Key::C);
    CopyChart: "Copy the page as a picture", "Copies the page at the side, with its bars, plots and tables, as it is shown.", None;
    CopyCode: "Copy as code", "Copies mask_mod and score_mod as PyTorch code.", None;
    SaveHtml: "Save as HTML…", "Saves one file for others: a picture that zooms, numbers, runs, code; Maskloom opens it again.", None;
    Unsaved: "Unsaved documents…", "Lists documents that were replaced before they were saved.", None;
    OpenSample: "Open the sample capture", "Opens q, k and v of a small language model that come with Maskloom.", None;
    SaveRecorder: "Save the capture script…", "Saves maskloom_capture.py, which records q, k and v of a model that you run.", None;
    NewTab: "New document in a tab", "Starts an empty document beside those that are open.", ctrl(Key::T);
    CloseTab: "Close the document", "Closes this tab; unsaved work stays among the unsaved documents.", ctrl(Key::W);
    NextTab: "Next document", "Shows the next open document.", ctrl(Key::PageDown);
    PreviousTab: "Previous document", "Shows the open document before this one.", ctrl(Key::PageUp);
    Quit: "Quit", "Closes the window; the next start restores all open documents with their undo.", ctrl(Key::Q);
    Undo: "Undo", "Reverts the last change.", ctrl(Key::Z);
    Redo: "Redo", "Restores the change that was undone.", ctrl_shift(Key::Z);
    Run: "Run", "Races the chosen backends and checks each against the float64 reference.", ctrl(Key::Enter);
    RunWhole: "Run all of it", "Races the whole document on the CPU too, where Run uses a smaller copy.", ctrl_shift(Key::Enter);
    RaceLengths: "Race over lengths", "Races this design at several shorter lengths, and plots time over length.", None;
    Detach: "Race without waiting", "Starts the race as a job that goes on without this window; Jobs shows it.", None;
    Jobs: "Jobs…", "Lists the jobs on the worker's machine that go on without this window, and opens their results.", None;
    Cancel: "Cancel", "Stops the work by ending the worker; a new worker starts when it is needed.", ctrl(Key::Period);
    Compile: "Compile the kernel", "Generates and compiles the CUDA kernel of this mask; needs NVRTC, no GPU.", ctrl(Key::B);
    Examine: "Examine this setup", "Looks at driver, NVRTC, PyTorch and display, and shows how to fix each problem.", None;
    FetchNvrtc: "Fetch NVRTC…", "Installs NVRTC with pip into Maskloom's own folder, after asking.", None;
    PasteCode: "Paste FlexAttention code…", "Adds a layer from mask_mod or score_mod code.", ctrl_shift(Key::V);
    OpenConfig: "Open a trainer's config.json…", "Reads a trainer's configuration and fits a preset to its model.", ctrl_shift(Key::O);
    Connect: "Connect a GPU…", "Runs the worker on another machine through a launch command such as ssh.", ctrl_shift(Key::G);
    Gallery: "Gallery", "Ready documents with small pictures of their masks.", ctrl(Key::G);
    Tour: "Tour of 90 seconds", "Plays a tour by itself, in a tab of its own: a stroke, its blocks, its time, export. Escape or a click ends it.", None;
    Palette: "Commands…", "Finds a command, preset or pattern by typing.", ctrl(Key::P);
    Shortcuts: "Keyboard shortcuts", "Lists every command with its keys.", plain(Key::F1);
    Messages: "Messages", "Lists all messages since the start.", ctrl_shift(Key::M);
    ShowDesign: "Design", "Shapes the mask with layers, canvas and inspector.", ctrl(Key::Num1);
    ShowRace: "Race", "Races the backends: times, speed-ups, errors.", ctrl(Key::Num2);
    ShowQuality: "Quality", "Shows what the mask does to attention: the map of a head.", ctrl(Key::Num3);
    ShowCode: "Code", "Edits the code; shows the printed PyTorch and the generated CUDA.", ctrl(Key::Num4);
    ShowExport: "Export", "Writes the mask for a trainer, a model or a program.", ctrl(Key::E);
    ShowLearn: "Learn", "Explains blocks, cost and FlashAttention in the window itself.", ctrl(Key::Num6);
    ShowParallel: "GPUs", "Plans this mask over several GPUs: who computes what, what travels, how long it takes.", ctrl(Key::Num5);
    SwitchFocus: "Canvas or page", "Moves the keyboard to the page at the side, or back to the canvas.", plain(Key::F6);
    ShowCell: "Cell", "Shows the mods evaluated step by step at one cell.", ctrl(Key::Num7);
    ShowProblems: "Problems", "Shows errors and warnings.", ctrl(Key::Num8);
    ShowSetup: "Setup", "Shows what is installed and what is missing.", ctrl(Key::Num9);
    ToolPan: "Pan", "Drag moves the picture, the wheel zooms.", plain(Key::V);
    ToolBrush: "Brush", "Keeps the cells under it, in a painted layer.", plain(Key::B);
    ToolLine: "Line", "Keeps the cells of a straight line, as wide as the brush.", plain(Key::L);
    ToolEraser: "Eraser", "Removes the cells under it, from every layer that keeps them.", plain(Key::E);
    ToolRectangle: "Rectangle", "Draws a rectangle as a new layer.", plain(Key::R);
    ToolBand: "Band", "Draws a diagonal band as a new layer.", plain(Key::D);
    ToolArea: "Select an area", "Tells kept cells, blocks, waste and bytes of the area that is dragged over.", plain(Key::A);
    ToolPolygon: "Select by a polygon", "Tells the same of what lines between clicked corners go around.", plain(Key::P);
    ToolLasso: "Select by a lasso", "Tells the same of what the pointer is drawn around.", plain(Key::S);
    KeepArea: "Keep the selected cells", "Keeps all cells of the selected area, in a painted layer.", None;
    DropArea: "Remove the selected cells", "Removes all cells of the selected area, from every layer that keeps them.", None;
    AddRectangle: "Add a rectangle", "Adds a rectangle layer with editable edges.", None;
    AddBand: "Add a band", "Adds a diagonal band layer with editable distances.", None;
    AddPainted: "Add a painted layer", "Adds an empty layer to paint on.", None;
    AddText: "Add code as a mask layer", "Adds a mask layer with FlexAttention text to edit here.", None;
    AddLinked: "Link a Python file as a mask layer…", "Adds a mask layer that follows a file of yours.", None;
    AddCurve: "Add a distance curve", "Adds a bias by distance, drawn with the mouse.", None;
    AddScoreText: "Add code as a score mod", "Adds a score mod with FlexAttention text to edit here.", None;
    AddScoreLinked: "Link a Python file as a score mod…", "Adds a score mod that follows a file of yours.", None;
    ReadLinked: "Read linked files again", "Reads linked Python files again after they changed.", plain(Key::F5);
    DeleteLayer: "Delete the layer", "Deletes the selected layer or score mod.", plain(Key::Delete);
    DuplicateLayer: "Duplicate the layer", "Copies the selected layer or score mod above itself.", ctrl(Key::D);
    MirrorLayer: "Mirror the layer", "Swaps rows and columns of the selected rectangle, band or painted layer.", ctrl_shift(Key::T);
    ToggleLayer: "Enable or disable the layer", "Switches the selected layer or score mod.", ctrl_shift(Key::E);
    LayerUp: "Move the layer up", "Moves the selected layer towards the top of its list.", alt(Key::ArrowUp);
    LayerDown: "Move the layer down", "Moves the selected layer towards the bottom of its list.", alt(Key::ArrowDown);
    ZoomIn: "Zoom in", "Draws the cells larger (plus on the canvas, or the wheel).", None;
    ZoomOut: "Zoom out", "Draws the cells smaller (minus on the canvas, or the wheel).", None;
    FitMask: "Fit the whole mask", "Draws the whole mask (Home on the canvas).", alt(Key::Home);
    GoToCell: "Go to a cell…", "Centres a cell by its q_idx and kv_idx.", ctrl(Key::L);
    Patches: "Patches", "Draws the keys of one query on the image or the video's frames instead of the matrix, or goes back.", plain(Key::G);
    Compare: "Compare with this from now on", "Remembers the present mask; the picture and the headline show the difference to it.", ctrl_shift(Key::D);
    StopComparing: "Stop comparing", "Forgets the compared mask.", None;
    Present: "Presentation", "Switches to large type, a light theme and the canvas alone, or back.", plain(Key::F11);
    NextHead: "Next head", "Shows the mask of the next head.", plain(Key::CloseBracket);
    PreviousHead: "Previous head", "Shows the mask of the previous head.", plain(Key::OpenBracket);
    ToggleLeft: "Show or hide the layers", "Switches the panel of the layers.", alt(Key::Num1);
    ToggleRight: "Show or hide the side page", "Switches the panel of the page.", alt(Key::Num2);
    CanvasOnly: "Canvas only", "Hides both panels, or brings them back.", ctrl(Key::Num0);
    SwapSides: "Swap the sides", "Exchanges the left and the right side.", None;
    LayersLeft: "Layers on the left", "Docks the layers on the left of the canvas.", None;
    LayersRight: "Layers on the right", "Docks the layers on the right of the canvas.", None;
    LayersBelow: "Layers below", "Docks the layers below the canvas.", None;
    PageLeft: "Page on the left", "Docks the page on the left of the canvas.", None;
    PageRight: "Page on the right", "Docks the page on the right of the canvas.", None;
    PageBelow: "Page below", "Docks the page below the canvas.", None;
    LargerText: "Larger text", "Makes everything in the window larger.", ctrl(Key::Plus);
    SmallerText: "Smaller text", "Makes everything in the window smaller.", ctrl(Key::Minus);
    NormalText: "Normal text size", "Gives everything its normal size.", None;
    ResetLayout: "Reset the layout", "Puts all panels back to their places and sizes.", None;
    StartStrip: "First steps", "Shows or hides the introduction.", None;
    ThemeSystem: "Theme: as the system", "Light or dark, like the system.", None;
    ThemeLight: "Theme: light", "Light colours.", None;
    ThemeDark: "Theme: dark", "Dark colours.", None;
}

impl Command {
    /// All commands, in the table's order.
    pub fn all() -> impl Iterator<Item = Command> {
        TABLE.iter().map(|spec| spec.command)
    }

    /// All commands by group, in the table's order.
    pub fn groups() -> [(&'static str, Vec<Command>); 6] {
        use Command::*;
        let starts = [New, Undo, Run, ShowDesign, ToolPan, ZoomIn];
        let names = ["File", "Edit", "Run, open and find", "Workspaces", "Tools and layers", "View"];
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

    /// Its name.
    pub fn text(self) -> &'static str {
        self.spec().text
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
        let tooltip = self.spec().tooltip;
        if keys.is_empty() { tooltip.to_string() } else { format!("{tooltip} ({keys})") }
    }

    /// Whether its keys are what one types: they belong to the canvas, and count only while it has the focus.
    pub fn is_typing(self) -> bool {
        self.spec()
            .shortcut
            .is_some_and(|s| s.modifiers.is_none() && !matches!(s.logical_key, Key::F1 | Key::F5 | Key::F6 | Key::F11))
    }
}

/// Commands whose keys were pressed. Consumes the keys, so that no widget sees them. Keys without modifiers count only
/// if the canvas has the focus, so that typing elsewhere edits nothing; the brackets belong to an active brush. While a
/// text field outside the document has the focus, undo and redo belong to it.
pub fn pressed(ctx: &egui::Context, on_canvas: bool, brush: bool, field_has_undo: bool) -> Vec<Command> {
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
            assert!(spec.tooltip.ends_with('.'), "{}: a tooltip is a sentence", spec.text);
            for other in &TABLE[at + 1..] {
                assert_ne!(spec.text, other.text);
                assert!(
                    spec.shortcut.is_none() || spec.shortcut != other.shortcut,
                    "{} and {} share their keys",
                    spec.text,
                    other.text
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
            out.push_str(&format!("\n## {title}\n\n| command | keys | what it does |\n|---|---|---|\n"));
            for command in commands {
                let spec = command.spec();
                out.push_str(&format!("| {} | {} | {} |\n", spec.text, command.keys(&ctx), spec.tooltip));
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
