//! Comma-separated values (RFC 4180): the columns of a recording, with a header; every text is quoted.
//!
//! A text that a spreadsheet would take for a formula has a `'` before it.

use crate::record::{Encoder, Ending, Meta, Record};
use crate::text::object::object;
use crate::text::quantity::escape_into;
use itoa::Integer;

const HEADER: &str = "type,ts_ns,dur_ns,pid,tid,comm,layer,name,class,category,depth,count,since_caller_ns,ret,error,\
                      failed,size,direction,host_memory,blocking,stream,address,held,kernel,stack,args\n";

/// Writes rows.
#[derive(Default)]
pub struct Csv {
    last: i64,
}

impl Encoder for Csv {
    fn start(&mut self, _meta: &Meta, out: &mut Vec<u8>) {
        out.extend_from_slice(HEADER.as_bytes());
    }

    fn take(&mut self, event: &Record<'_>, out: &mut Vec<u8>) {
        self.last = self.last.max(event.end());
        let mut row = Row(out);
        row.text(Some(event.kind.name()));
        row.number(Some(event.at));
        row.number(event.ns);
        row.number(Some(event.pid));
        row.number(Some(event.tid));
        row.text(Some(event.comm));
        row.text(Some(event.layer));
        row.text(Some(event.name));
        row.text(Some(event.class.name()));
        row.text(Some(event.class.category()));
        row.number(Some(event.depth));
        row.number(Some(event.count));
        row.number(event.since_caller);
        row.number(event.result);
        row.text(event.error);
        row.truth(event.failed);
        row.number(event.bytes);
        row.text(event.direction.map(|direction| direction.name()));
        row.text(event.host.map(|host| host.name()));
        row.truth(event.blocking);
        row.number(event.stream);
        row.number(event.address);
        row.number(event.held);
        row.text(event.kernel);
        row.json(event.stack);
        row.json(event.args);
        row.end();
    }

    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>) {
        if let Some(totals) = ending.totals(self.last) {
            self.take(&totals, out);
        }
    }
}

/// Fields, each with a comma behind it.
struct Row<'a>(&'a mut Vec<u8>);

impl Row<'_> {
    fn number(&mut self, number: Option<impl Integer>) {
        if let Some(number) = number {
            self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        self.0.push(b',');
    }

    fn truth(&mut self, truth: bool) {
        self.0.extend_from_slice(if truth { b"true," } else { b"false," });
    }

    /// Nothing at all is no text, two quotes are an empty one.
    fn text(&mut self, text: Option<&str>) {
        self.quoted(text, escape_into);
    }

    /// What is no JSON, as only a crafted recording has it, is text.
    fn json(&mut self, json: Option<&str>) {
        let plain = json.and_then(object);
        match plain {
            Some(plain) => self.quoted(Some(&plain), |json, out| out.extend_from_slice(json.as_bytes())),
            None => self.text(json),
        }
    }

    fn quoted(&mut self, text: Option<&str>, write: impl Fn(&str, &mut Vec<u8>)) {
        if let Some(text) = text {
            self.0.push(b'"');
            if text.starts_with(['=', '+', '-', '@']) {
                self.0.push(b'\'');
            }
            for (index, part) in text.split('"').enumerate() {
                self.0.extend_from_slice(if index == 0 { b"" } else { b"\"\"" });
                write(part, self.0);
            }
            self.0.push(b'"');
        }
        self.0.push(b',');
    }

    fn end(&mut self) {
        self.0.pop();
        self.0.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample;
    use crate::record::Kind;

    #[test]
    fn comma_separated_values() {
        insta::assert_snapshot!(sample::written(&mut Csv::default()));
    }

    fn row(event: &Record<'_>) -> String {
        let mut out = Vec::new();
        Csv::default().take(event, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_is_no_formula() {
        let row = row(&Record {
            comm: "=HYPERLINK(\"http://x\")",
            kernel: Some("@SUM(1)"),
            result: Some(-5),
            ..Record::new(Kind::Call, -7, 1)
        });
        assert!(row.contains(",\"'=HYPERLINK(\"\"http://x\"\")\","), "{row}");
        assert!(row.contains(",\"'@SUM(1)\","), "{row}");
        assert!(
            row.contains(",-7,") && row.contains(",-5,"),
            "numbers stay numbers: {row}"
        );
    }

    #[test]
    fn a_crafted_stack_drives_no_terminal() {
        for stack in ["\u{1b}[2J", "[\"\u{9b}2J\"\n]", "=1\r\n"] {
            let row = row(&Record {
                stack: Some(stack),
                ..Record::new(Kind::Call, 0, 1)
            });
            assert!(!row.trim_end_matches('\n').contains(char::is_control), "{row:?}");
        }
    }

    #[test]
    fn the_header_names_the_columns_of_a_recording() {
        let meta = sample::meta();
        let schema = crate::trace::schema::schema(&meta);
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(HEADER.trim_end().split(',').collect::<Vec<_>>(), columns);
    }
}
