//! Local transactions.

use corriere_core::TransactionId;
use corriere_core::provider::{Capability, ProviderError, Receipt};

use super::commands::done;
use super::error::About;
use super::state::{State, Then, unknown};
use crate::codec::structures::{TransactionId as WireTransactionId, TransactionInfo, TransactionOperation};

impl State {
    pub(super) fn begin(&mut self, transaction: TransactionId) -> Result<Receipt, ProviderError> {
        let info = self.transaction_info(&transaction, TransactionOperation::Begin)?;
        self.transactions.insert(transaction, Vec::new());
        self.tell(info);
        Ok(done())
    }

    pub(super) fn end_transaction(
        &mut self,
        transaction: &TransactionId,
        operation: TransactionOperation,
    ) -> Result<Receipt, ProviderError> {
        let info = self.transaction_info(transaction, operation)?;
        let acknowledged = self
            .transactions
            .remove(transaction)
            .ok_or_else(|| unknown(format_args!("transaction {transaction}")))?;
        let info = TransactionInfo { response_required: true, ..info };
        let commits = operation == TransactionOperation::CommitOnePhase;
        let about = About::Transaction(transaction.to_string());
        Ok(self.ask(info, about, Then::Ended { acknowledged, commits }))
    }

    fn transaction_info(
        &self,
        transaction: &TransactionId,
        operation: TransactionOperation,
    ) -> Result<TransactionInfo, ProviderError> {
        if let TransactionId::Distributed(_) = transaction {
            return Err(ProviderError::Unsupported(Capability::DistributedTransactions));
        }
        Ok(TransactionInfo {
            connection_id: Some(self.peer.connection.clone()),
            transaction_id: Some(self.transaction_id(transaction)?),
            operation,
            ..TransactionInfo::default()
        })
    }

    pub(super) fn transaction_id(
        &self,
        transaction: &TransactionId,
    ) -> Result<WireTransactionId, ProviderError> {
        WireTransactionId::from_core(transaction, &self.peer.connection)
            .map_err(|_| unknown(format_args!("transaction {transaction}")))
    }
}
