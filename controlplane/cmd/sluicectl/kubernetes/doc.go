// Package kubernetes connects the plugin of kubectl to the control plane of a release of the chart. It reads the kubeconfig, the Secret with
// the administrator's certificate, and forwards a local port to a pod. The certificate and its key stay in memory.
package kubernetes
