package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	clients "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// portName is the name of the API's port in the pods of the chart.
const portName = "grpc"

// forward forwards a free port of loopback to the API of a pod. It returns the local address, and how to end it.
func forward(ctx context.Context, config *rest.Config, client clients.Interface, pod *corev1.Pod) (string, func(), error) {
	what := fmt.Sprintf("forwarding a port to pod %s/%s", pod.Namespace, pod.Name)
	port := apiPort(pod)
	if port == 0 {
		return "", nil, &Error{codes.FailedPrecondition, what + ": no container has a port named " + portName}
	}
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := newDialer(config, at)
	if err != nil {
		return "", nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf("0:%d", port)}, ready, nil, nil)
	if err != nil {
		stop()
		return "", nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		stop()
		return "", nil, &Error{codes.Unavailable, fmt.Sprintf("%s: %v. Your account needs the right to create pods/portforward in namespace %s, "+
			"and the API server has to reach the node of the pod", what, err, pod.Namespace)}
	case <-ctx.Done():
		stop()
		return "", nil, context.Cause(ctx)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { stop(); <-ended }, nil
}

// newDialer dials by WebSocket, and by SPDY where an API server or a proxy does not support that, as kubectl does.
func newDialer(config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

func apiPort(pod *corev1.Pod) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == portName {
				return port.ContainerPort
			}
		}
	}
	return 0
}
