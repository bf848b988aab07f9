//! What a GPU said of itself while a run was timed: clocks, power, temperature.
//!
//! Invariant: what a card does not say is absent, never zero. Must not know drivers.

use serde::{Deserialize, Serialize};

/// A card at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardState {
    /// Clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<u32>,
    /// Clock of the memory, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mhz: Option<u32>,
    /// Power that it draws, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<u32>,
    /// Power that it may draw, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<u32>,
    /// In degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
}

/// A card before the first timed pass of a run and after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardStates {
    /// Before.
    pub start: CardState,
    /// After.
    pub end: CardState,
}

/// `SM 1980 MHz, memory 2619 MHz, 123 of 700 W, 45 °C`; what is absent is left out.
impl std::fmt::Display for CardState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let power = match (self.power_w, self.power_limit_w) {
            (Some(power), Some(limit)) => Some(format!("{power} of {limit} W")),
            (Some(power), None) => Some(format!("{power} W")),
            (None, Some(limit)) => Some(format!("at most {limit} W")),
            (None, None) => None,
        };
        let said = [
            self.sm_mhz.map(|clock| format!("SM {clock} MHz")),
            self.memory_mhz.map(|clock| format!("memory {clock} MHz")),
            power,
            self.temperature_c.map(|degrees| format!("{degrees} °C")),
        ];
        let said: Vec<String> = said.into_iter().flatten().collect();
        f.write_str(if said.is_empty() { "the card says nothing" } else { "" })?;
        f.write_str(&said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_card_does_not_say_is_left_out() {
        let whole = CardState {
            sm_mhz: Some(1980),
            memory_mhz: Some(2619),
            power_w: Some(123),
            power_limit_w: Some(700),
            temperature_c: Some(45),
        };
        assert_eq!(whole.to_string(), "SM 1980 MHz, memory 2619 MHz, 123 of 700 W, 45 °C");
        let some = CardState { memory_mhz: None, power_w: None, temperature_c: None, ..whole };
        assert_eq!(some.to_string(), "SM 1980 MHz, at most 700 W");
        assert_eq!(serde_json::to_string(&some).unwrap(), "{\"sm_mhz\":1980,\"power_limit_w\":700}");
        assert_eq!(CardState::default().to_string(), "the card says nothing");
    }
}
