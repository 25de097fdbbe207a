//! The configuration of the reference's pass backend: JSON in base64 on the command line.

use crate::error::CommandError;
use serde::Deserialize;
use std::path::PathBuf;

/// What the configuration says; other keys are ignored, as the reference does.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    pub(super) input_pass_rule_dir: Option<PathBuf>,
    pub(super) output_pass_rule_dir: Option<PathBuf>,
    pub(super) pass_match_result_file_path: Option<PathBuf>,
}

impl Config {
    pub(super) fn parse(text: Option<&str>) -> Result<Self, CommandError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let hint = "`--config` takes a JSON object in base64, as `base64 -w 0` prints it";
        let bytes = decode(text).map_err(|place| {
            CommandError::input(format!("`--config` is not base64: character {place}"))
                .with_hint(hint)
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| CommandError::input(format!("`--config`: {error}")).with_hint(hint))
    }
}

/// The bytes of a base64 text, or the number of the first character that is wrong. Line breaks do not count.
fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits, mut padding) = (0_u32, 0_u32, 0);
    for (place, character) in text.bytes().enumerate() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' | b' ' => continue,
            b'=' if padding < 2 => {
                padding += 1;
                continue;
            }
            _ => return Err(place + 1),
        };
        if padding > 0 {
            return Err(place + 1);
        }
        held = (held << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    // What is left over is the rest of the last byte, never a whole character.
    if bits >= 6 { Err(text.len()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_base64_prints_it() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg", b"foob"),
            ("//79\n", b"\xff\xfe\xfd"),
        ] {
            assert_eq!(decode(text).as_deref(), Ok(bytes), "{text}");
        }
        assert_eq!(
            [decode("Zm9v!"), decode("Zg==Zg"), decode("Z"), decode("Zg===")].map(|r| r.is_err()),
            [true; 4]
        );
    }

    #[test]
    fn unknown_keys_are_ignored_and_bad_json_is_not() {
        // {"output_pass_rule_dir": "p", "output_pass_pattern_limit": 100}
        let text =
            "eyJvdXRwdXRfcGFzc19ydWxlX2RpciI6ICJwIiwgIm91dHB1dF9wYXNzX3BhdHRlcm5fbGltaXQiOiAxMDB9";
        let config = Config::parse(Some(text)).unwrap();
        assert_eq!(config.output_pass_rule_dir, Some("p".into()));
        assert_eq!(Config::parse(None).unwrap(), Config::default());
        assert!(Config::parse(Some("Zm9v")).is_err());
        assert!(Config::parse(Some("?")).is_err());
    }
}
