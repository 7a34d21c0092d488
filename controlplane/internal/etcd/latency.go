package etcd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Measure records the duration of every request of a client.
func Measure(client *clientv3.Client, registry prometheus.Registerer) {
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_controlplane_etcd_request_duration_seconds",
		Help:    "Time that a request to etcd took, its retries in it.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
	}, []string{"operation", "result"})
	registry.MustRegister(times)
	client.KV = &measured{client.KV, times}
}

type measured struct {
	clientv3.KV
	times *prometheus.HistogramVec
}

func (m *measured) observe(operation string, begun time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.times.WithLabelValues(operation, result).Observe(time.Since(begun).Seconds())
}

func (m *measured) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	begun := time.Now()
	response, err := m.KV.Get(ctx, key, options...)
	m.observe("get", begun, err)
	return response, err
}

func (m *measured) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	begun := time.Now()
	response, err := m.KV.Put(ctx, key, value, options...)
	m.observe("put", begun, err)
	return response, err
}

func (m *measured) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	begun := time.Now()
	response, err := m.KV.Delete(ctx, key, options...)
	m.observe("delete", begun, err)
	return response, err
}

func (m *measured) Txn(ctx context.Context) clientv3.Txn {
	return AroundCommit(m.KV.Txn(ctx), func(commit Commit) (*clientv3.TxnResponse, error) {
		begun := time.Now()
		response, err := commit()
		m.observe("txn", begun, err)
		return response, err
	})
}
