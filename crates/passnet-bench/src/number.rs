//! Numbers as text: JSON has no NaN, and logs must be spelt the way Python spells them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A float that survives JSON: finite values are numbers, the others the strings `nan`, `inf`, `-inf`.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub f64);

impl PartialEq for Number {
    /// NaN equals NaN here: this is about the record, not about arithmetic.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&python_float(self.0))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&python_float(self.0))
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(x) => Ok(Number(x)),
            Form::Text(s) => match s.as_str() {
                "nan" => Ok(Number(f64::NAN)),
                "inf" => Ok(Number(f64::INFINITY)),
                "-inf" => Ok(Number(f64::NEG_INFINITY)),
                _ => Err(D::Error::custom(format!("`{s}` is not a number"))),
            },
        }
    }
}

/// For `#[serde(with = "number::as_number")]`: a plain float stored as a [`Number`].
pub mod as_number {
    use super::Number;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Number(*value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Number::deserialize(deserializer).map(|number| number.0)
    }
}

/// The shortest text that reads back as the same float, in Python's spelling: `0.1`, `1e-09`, `inf`.
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelt_as_python_spells_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.000_122_070_312_5, "0.0001220703125"),
            (1.862_645_149_230_957e-9, "1.862645149230957e-09"),
            (0.000_01, "1e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(python_float(value), text);
        }
    }

    #[test]
    fn json_keeps_every_float() {
        for value in [0.25, -1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let json = serde_json::to_string(&Number(value)).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&json).unwrap(), Number(value));
        }
        assert!(serde_json::from_str::<Number>("\"seven\"").is_err());
    }
}
