package etcd

import clientv3 "go.etcd.io/etcd/client/v3"

// Commit sends a transaction to etcd.
type Commit func() (*clientv3.TxnResponse, error)

// AroundCommit returns a transaction whose Commit calls `around` with the Commit of `txn`.
func AroundCommit(txn clientv3.Txn, around func(Commit) (*clientv3.TxnResponse, error)) clientv3.Txn {
	return &aroundTxn{txn, around}
}

// aroundTxn wraps the results of If, Then and Else again, since Commit is called on these.
type aroundTxn struct {
	txn    clientv3.Txn
	around func(Commit) (*clientv3.TxnResponse, error)
}

func (t *aroundTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	return &aroundTxn{t.txn.If(compares...), t.around}
}

func (t *aroundTxn) Then(operations ...clientv3.Op) clientv3.Txn {
	return &aroundTxn{t.txn.Then(operations...), t.around}
}

func (t *aroundTxn) Else(operations ...clientv3.Op) clientv3.Txn {
	return &aroundTxn{t.txn.Else(operations...), t.around}
}

func (t *aroundTxn) Commit() (*clientv3.TxnResponse, error) { return t.around(t.txn.Commit) }
