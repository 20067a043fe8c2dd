//! The tables of the checkpoint, and what is in them.

use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table,
    TableDefinition, TableError, WriteTransaction,
};

use super::error::unreadable;
use super::{CheckpointError, Place, values};
use crate::journal::index::{
    Changes, Counters, Operation, Producer, Saved, SavedTransaction, TransactionChange,
};
use crate::journal::lsn::Lsn;
use crate::store::StoredId;

/// The version of the format of what is in the file; redb has one of its own.
pub(crate) const VERSION: u64 = 2;

pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REFERENCES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("references");
const QUEUES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("queues");
pub(super) const SUBSCRIPTIONS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("subscriptions");
const PRODUCERS: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("producers");
const TRANSACTIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transactions");
const OPERATIONS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("operations");

/// Writes all of these, after which the counters and the place are those.
pub(super) fn write(
    database: &Database,
    unwritten: &[(Changes, Place)],
    counters: Counters,
    place: Place,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    for (changes, _) in unwritten {
        write_changes(&transaction, changes)?;
    }
    {
        let mut meta = transaction.open_table(META)?;
        for (name, value) in [
            ("version", VERSION),
            ("epoch", place.epoch),
            ("tail", place.tail.0),
            ("durable", place.durable.0),
            ("position", counters.position),
            ("last_id", counters.last_id.0),
            ("transaction", counters.transaction),
            ("prepared", counters.prepared),
            ("queues", counters.queues),
        ] {
            meta.insert(name, value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// How many pages references are in. Looks at all of them.
pub(super) fn pages_of_references(database: &Database) -> Result<u64, redb::Error> {
    let stats = database.begin_read()?.open_table(REFERENCES)?.stats()?;
    Ok(stats.leaf_pages() + stats.branch_pages())
}

fn write_changes(transaction: &WriteTransaction, changes: &Changes) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    let mut references = transaction.open_table(REFERENCES)?;
    for (stored, reference) in &changes.references {
        match reference {
            Some(reference) => {
                values::put_padded_reference(&mut bytes, *stored, reference);
                references.insert(stored.0, &*bytes)?;
            }
            None => drop(references.remove(stored.0)?),
        }
        bytes.clear();
    }
    let mut queues = transaction.open_table(QUEUES)?;
    let mut subscriptions = transaction.open_table(SUBSCRIPTIONS)?;
    for (number, holder, totals) in &changes.queues {
        let table =
            if values::put_holder(&mut bytes, holder, totals) { &mut subscriptions } else { &mut queues };
        table.insert(number, &*bytes)?;
        bytes.clear();
    }
    for number in &changes.removed_queues {
        subscriptions.remove(number)?;
    }
    let mut producers = transaction.open_table(PRODUCERS)?;
    for (name, producer) in &changes.producers {
        match producer {
            Some(Producer { sequence, used }) => drop(producers.insert(&**name, (*sequence, *used))?),
            None => drop(producers.remove(&**name)?),
        }
    }
    let mut transactions = transaction.open_table(TRANSACTIONS)?;
    let mut operations = transaction.open_table(OPERATIONS)?;
    for change in &changes.transactions {
        write_transaction(&mut transactions, &mut operations, change)?;
    }
    Ok(())
}

fn write_transaction(
    transactions: &mut Table<'_, u64, &[u8]>,
    operations: &mut Table<'_, (u64, u64), &[u8]>,
    change: &TransactionChange,
) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    match change {
        TransactionChange::Open { number, id, prepared, from, operations: added } => {
            values::put_transaction(&mut bytes, id, *prepared);
            transactions.insert(number, &*bytes)?;
            for (place, operation) in (*from as u64..).zip(added) {
                bytes.clear();
                values::put_operation(&mut bytes, operation);
                operations.insert((*number, place), &*bytes)?;
            }
        }
        TransactionChange::Ended { number, operations: count } => {
            transactions.remove(number)?;
            for place in 0..*count as u64 {
                operations.remove((*number, place))?;
            }
        }
    }
    Ok(())
}

pub(super) fn read(transaction: &ReadTransaction) -> Result<(Saved, Place), CheckpointError> {
    let meta = transaction.open_table(META).map_err(unreadable)?;
    let get = |name: &str| -> Result<u64, CheckpointError> {
        let value = meta.get(name).map_err(unreadable)?;
        value
            .map(|value| value.value())
            .ok_or_else(|| CheckpointError::Unreadable(format!("it has no `{name}`")))
    };
    // Before anything else: what comes after the version is that version's.
    let version = get("version")?;
    if version > VERSION {
        return Err(CheckpointError::Newer { found: version });
    }
    let place = Place { epoch: get("epoch")?, tail: Lsn(get("tail")?), durable: Lsn(get("durable")?) };
    let counters = Counters {
        position: get("position")?,
        last_id: StoredId(get("last_id")?),
        transaction: get("transaction")?,
        prepared: get("prepared")?,
        queues: if version == 1 { 0 } else { get("queues")? },
    };
    let mut saved = Saved { counters, ..Saved::default() };
    each(transaction, QUEUES, |number, bytes| {
        let (holder, totals) = values::queue(bytes)?;
        saved.queues.push((number, holder, totals));
        Ok(())
    })?;
    each(transaction, SUBSCRIPTIONS, |number, bytes| {
        let (holder, totals) = values::subscription(bytes)?;
        saved.queues.push((number, holder, totals));
        Ok(())
    })?;
    saved.queues.sort_unstable_by_key(|(number, ..)| *number);
    each(transaction, REFERENCES, |stored, bytes| {
        let stored = StoredId(stored);
        let reference = values::padded_reference(stored, bytes)?;
        if saved.queues.binary_search_by_key(&reference.queue, |(number, ..)| *number).is_err() {
            return Err("a message is on a queue that is missing");
        }
        saved.references.push((stored, reference));
        Ok(())
    })?;
    each(transaction, PRODUCERS, |name: &str, (sequence, used)| {
        saved.producers.push((name.into(), Producer { sequence, used }));
        Ok(())
    })?;
    each(transaction, TRANSACTIONS, |number, bytes| {
        let (id, prepared) = values::transaction(bytes)?;
        saved.transactions.push(SavedTransaction { number, id, prepared, operations: Vec::new() });
        Ok(())
    })?;
    each(transaction, OPERATIONS, |(number, place), bytes| {
        let operations =
            operations_of(&mut saved.transactions, number).ok_or("an operation has no transaction")?;
        if place != operations.len() as u64 {
            return Err("an operation is missing");
        }
        operations.push(values::operation(bytes)?);
        Ok(())
    })?;
    Ok((saved, place))
}

fn operations_of(transactions: &mut [SavedTransaction], number: u64) -> Option<&mut Vec<Operation>> {
    let at = transactions.binary_search_by_key(&number, |transaction| transaction.number).ok()?;
    Some(&mut transactions[at].operations)
}

/// Visits the rows of a table in the order of their keys; a table that was never written is empty.
fn each<K: redb::Key + 'static, V: redb::Value + 'static>(
    transaction: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
    mut visit: impl for<'a> FnMut(K::SelfType<'a>, V::SelfType<'a>) -> Result<(), &'static str>,
) -> Result<(), CheckpointError> {
    let table = match transaction.open_table(definition) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    for row in table.iter().map_err(unreadable)? {
        let (key, value) = row.map_err(unreadable)?;
        visit(key.value(), value.value()).map_err(|fault| {
            CheckpointError::Unreadable(format!("table `{}`: {fault}", redb::TableHandle::name(&definition)))
        })?;
    }
    Ok(())
}
