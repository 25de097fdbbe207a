//! Who may submit: authors, their keys, their tokens.

use super::{Store, now};
use crate::Error;
use crate::bundle::is_digest_text;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use std::fmt;

const MAX_NAME: usize = 80;
/// What a token begins with, so that one that leaks is known for what it is.
const PREFIX: &str = "passnet_";

/// Who may submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Author {
    /// In the store.
    #[serde(skip)]
    pub id: i64,
    /// By which entries name them.
    pub name: String,
    /// Bundles of this author are signed with it.
    pub public_key: String,
    /// Tokens that still work.
    pub tokens: i64,
}

/// What lets an author submit. It is shown once; the store keeps its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    fn random() -> Result<Token, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::lacking(format!("the system gives no random numbers: {error}"))
        })?;
        Ok(Token(format!("{PREFIX}{}", blake3::Hash::from_bytes(bytes).to_hex())))
    }

    /// What somebody sent as one.
    pub fn given(text: &str) -> Token {
        Token(text.to_string())
    }

    /// To be shown to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A token has 256 random bits: a plain digest tells nothing about it.
    fn hash(&self) -> [u8; 32] {
        blake3::derive_key("passnet leaderboard token 1", self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Store {
    /// Adds an author, or gives a known one another key.
    pub fn add_author(&self, name: &str, public_key: &str) -> Result<(), Error> {
        let is_short = !name.trim().is_empty() && name.chars().count() <= MAX_NAME;
        if !is_short || name.chars().any(char::is_control) {
            return Err(Error::input(format!("an author's name has 1 to {MAX_NAME} characters")));
        }
        if !is_digest_text(public_key) {
            return Err(Error::input("a public key is 64 hexadecimal digits")
                .with_hint("`passnet bundle key FILE` prints that of a key"));
        }
        self.write(|connection| {
            connection.execute(
                "INSERT INTO author (name, public_key, made) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET public_key = excluded.public_key",
                params![name, public_key, now()],
            )?;
            Ok(())
        })
    }

    /// A new token for a known author.
    pub fn add_token(&self, author: &str) -> Result<Token, Error> {
        let token = Token::random()?;
        let added = self.write(|connection| {
            Ok(connection.execute(
                "INSERT INTO token (hash, author, made) SELECT ?1, id, ?3 FROM author WHERE name = ?2",
                params![token.hash(), author, now()],
            )?)
        })?;
        match added {
            1 => Ok(token),
            _ => Err(Error::input(format!("there is no author `{}`", author.escape_debug()))),
        }
    }

    /// Ends all tokens of an author; gives how many there were.
    pub fn revoke_tokens(&self, author: &str) -> Result<usize, Error> {
        self.write(|connection| {
            Ok(connection.execute(
                "UPDATE token SET revoked = ?2
                 WHERE revoked IS NULL AND author = (SELECT id FROM author WHERE name = ?1)",
                params![author, now()],
            )?)
        })
    }

    /// Whose token this is; `None` where it is nobody's, or no longer.
    pub fn author_of(&self, token: &Token) -> Result<Option<Author>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT author.id, author.name, author.public_key FROM token
                     JOIN author ON author.id = token.author
                 WHERE token.hash = ?1 AND token.revoked IS NULL",
            )?;
            let found = statement.query_row([token.hash()], |row| {
                let (id, name) = (row.get(0)?, row.get(1)?);
                Ok(Author { id, name, public_key: row.get(2)?, tokens: 1 })
            });
            Ok(found.optional()?)
        })
    }

    /// By name.
    pub fn authors(&self) -> Result<Vec<Author>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, name, public_key,
                     (SELECT count(*) FROM token WHERE author = author.id AND revoked IS NULL)
                 FROM author ORDER BY name",
            )?;
            let rows = statement.query_map([], |row| {
                let (id, name) = (row.get(0)?, row.get(1)?);
                Ok(Author { id, name, public_key: row.get(2)?, tokens: row.get(3)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
