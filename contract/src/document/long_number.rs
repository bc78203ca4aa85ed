//! Integers of more digits than the tokenizer takes. It is given a copy in which all digits of such a run
//! but the last are blanks: every other byte keeps its place, and the number's own text stays what it was.

/// The tokenizer takes 4,300 digits before a point or exponent
const TAKEN: usize = 4_000;

/// A run that has been blanked out
pub(super) struct LongNumber {
    /// Where the number starts, its sign included
    pub(super) start: u32,
    /// Where the digit stands that was left
    pub(super) last: u32,
}

/// The copy, and what was blanked out in it
pub(super) fn blank(text: &[u8]) -> (Vec<u8>, Vec<LongNumber>) {
    let mut copy = text.to_vec();
    let mut found = Vec::new();
    let mut in_string = false;
    let mut at = 0;
    while let Some(b) = text.get(at) {
        match b {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'1'..=b'9' if !in_string => {
                let digits = text.get(at..).unwrap_or_default();
                let run = digits.iter().take_while(|b| b.is_ascii_digit()).count();
                if run > TAKEN
                    && let Some(start) = integer_start(text, at)
                {
                    let last = at + run - 1;
                    if let Some(blanked) = copy.get_mut(start..last) {
                        blanked.fill(b' ');
                    }
                    // A text is below 4 GiB
                    found.push(LongNumber {
                        start: start as u32,
                        last: last as u32,
                    });
                }
                at += run - 1;
            }
            _ => {}
        }
        at += 1;
    }
    (copy, found)
}

/// Where the number starts whose integer part begins at `digits`; `None` for a fraction's or exponent's
fn integer_start(text: &[u8], digits: usize) -> Option<usize> {
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at));
    let (start, before) = match before(digits) {
        Some(b'-') => (digits - 1, before(digits - 1)),
        other => (digits, other),
    };
    let inside =
        before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'));
    (!inside).then_some(start)
}
