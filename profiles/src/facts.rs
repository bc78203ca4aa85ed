//! A request as the engine reads it: its fields, its evidence and its document are made at most once, and
//! only when something asks for them, so that what the signature covers whole is authenticated unread.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use postern_contract::{Document, MalformedBody, Sha256Hex, Value};

use crate::form::{self, Fields};
use crate::profile::{Form, Profile};
use crate::request::{OneHeader, RequestParts};

/// What an operator has told a source beside its keys, by name: a text, or several
pub type Params = BTreeMap<String, Vec<String>>;

/// A request, read as it is asked for
pub(crate) struct Facts<'r> {
    pub(crate) request: RequestParts<'r>,
    pub(crate) params: &'r Params,
    form: Option<&'r Form>,
    fields: OnceCell<Option<Fields>>,
    query: OnceCell<Fields>,
    evidence: OnceCell<Bytes>,
    document: OnceCell<Result<Document, MalformedBody>>,
    body_sha256: OnceCell<Sha256Hex>,
}

/// A request and what is known of it beside: what places are read from
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts<'a>,
    /// The id that was signed
    pub(crate) signed_id: Option<&'a [u8]>,
    /// The claims of a token
    pub(crate) claims: Option<&'a Document>,
    /// The item of a batch
    pub(crate) item: Option<Value<'a>>,
}

impl<'r> Facts<'r> {
    pub(crate) fn new(profile: &'r Profile, request: RequestParts<'r>, params: &'r Params) -> Self {
        Self {
            request,
            params,
            form: profile.declared.form.as_ref(),
            fields: OnceCell::new(),
            query: OnceCell::new(),
            evidence: OnceCell::new(),
            document: OnceCell::new(),
            body_sha256: OnceCell::new(),
        }
    }

    /// The request alone
    pub(crate) fn view(&self) -> View<'_> {
        View {
            facts: self,
            signed_id: None,
            claims: None,
            item: None,
        }
    }

    /// The fields of a form; `None` where the body is none
    pub(crate) fn fields(&self) -> Option<&[(String, String)]> {
        let fields = self.fields.get_or_init(|| {
            let form = self.form?;
            form::fields(form, self.request.headers, self.request.body)
        });
        fields.as_deref()
    }

    /// SHA-256 of the whole body
    pub(crate) fn body_sha256(&self) -> Sha256Hex {
        *self
            .body_sha256
            .get_or_init(|| Sha256Hex::of(self.request.body))
    }

    /// The JSON text of the evidence: what a form stands for, else the body
    pub(crate) fn evidence(&self) -> &Bytes {
        self.evidence.get_or_init(|| {
            let form = self.form.zip(self.fields());
            form.map_or_else(
                || self.request.body.clone(),
                |(form, fields)| form::evidence(form, fields),
            )
        })
    }

    /// The evidence
    pub(crate) fn document(&self) -> Result<&Document, &MalformedBody> {
        let document = self
            .document
            .get_or_init(|| Document::parse(self.evidence().clone()));
        document.as_ref()
    }

    /// The evidence for good
    pub(crate) fn into_document(self) -> Result<Document, MalformedBody> {
        let _ = self.document();
        let text = self.evidence().clone();
        self.document
            .into_inner()
            .unwrap_or_else(|| Document::parse(text))
    }

    /// The first value of a parameter of the source
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.first().map(String::as_str)
    }

    /// The URL as the provider called it: behind a proxy, the parameter `base_url` and what came behind it
    pub(crate) fn url(&self) -> Cow<'_, str> {
        match self.param("base_url") {
            Some(base) => {
                let base = base.trim_end_matches('/');
                Cow::Owned(format!("{base}{}", self.path_and_query()))
            }
            None => Cow::Borrowed(self.request.url),
        }
    }

    /// Path and query of the URL
    pub(crate) fn path_and_query(&self) -> &str {
        let url = self.request.url;
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let from = rest.find('/').or_else(|| rest.find('?'));
        let path = from.and_then(|at| rest.get(at..)).unwrap_or("/");
        path.split('#').next().unwrap_or_default()
    }

    /// The only value of a parameter of the query, decoded
    pub(crate) fn query(&self, name: &str) -> OneHeader<'_> {
        let fields = self.query.get_or_init(|| {
            let path = self.path_and_query();
            let query = path.split_once('?').map_or("", |(_, query)| query);
            form_urlencoded::parse(query.as_bytes())
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect()
        });
        let mut values = fields.iter().filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (None, _) => OneHeader::None,
            (Some((_, value)), None) => OneHeader::One(value.as_bytes()),
            (Some(_), Some(_)) => OneHeader::Several,
        }
    }
}
