package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clients "k8s.io/client-go/kubernetes"
)

// Labels and names of the chart's objects.
const (
	controlPlane  = "app.kubernetes.io/name=sluice-controlplane,app.kubernetes.io/part-of=sluice"
	releaseLabel  = "app.kubernetes.io/instance"
	serviceSuffix = "-controlplane"
	secretSuffix  = "-admin-tls"
)

// release is an installed release of the chart.
type release struct{ service corev1.Service }

func (r release) name() string      { return r.service.Labels[releaseLabel] }
func (r release) namespace() string { return r.service.Namespace }

// findRelease returns the release of a namespace if the caller gave one. Otherwise it returns that of the context's own namespace, or the
// only one of the cluster. Errors: none, several, no right to list Services.
func findRelease(ctx context.Context, client clients.Interface, own string, given bool, wanted string) (release, error) {
	found, err := releases(ctx, client, own, wanted)
	if err != nil && (given || !apierrors.IsForbidden(err)) {
		return release{}, refused(err, "looking for a release of Sluice in namespace "+own, "list services", own)
	}
	where := "namespace " + own
	if len(found) == 0 && !given {
		where = "all namespaces"
		found, err = releases(ctx, client, metav1.NamespaceAll, wanted)
		if apierrors.IsForbidden(err) {
			return release{}, &Error{codes.PermissionDenied, fmt.Sprintf("namespace %s has no release of Sluice that you may see, and you may not list the "+
				"services of all namespaces: name the release's namespace with -n NAMESPACE", own)}
		}
		if err != nil {
			return release{}, refused(err, "looking for a release of Sluice in all namespaces", "list services", "NAMESPACE")
		}
	}
	switch len(found) {
	case 0:
		with := ""
		if wanted != "" {
			with = " " + wanted
		}
		return release{}, &Error{codes.NotFound, fmt.Sprintf("no release%s of Sluice in %s: name its namespace with -n NAMESPACE, another cluster with "+
			"--context, or a control plane outside of Kubernetes with --server", with, where)}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, one := range found {
		names = append(names, one.name()+" in namespace "+one.namespace())
	}
	slices.Sort(names)
	return release{}, &Error{codes.InvalidArgument, fmt.Sprintf("several releases of Sluice in %s: %s. Choose one with -n NAMESPACE or --release NAME",
		where, strings.Join(names, ", "))}
}

// releases returns the releases of a namespace with that name; empty: all.
func releases(ctx context.Context, client clients.Interface, namespace, wanted string) ([]release, error) {
	selector := controlPlane
	if wanted != "" {
		selector += "," + releaseLabel + "=" + wanted
	}
	listed, err := client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var found []release
	for _, service := range listed.Items {
		found = append(found, release{service})
	}
	return found, nil
}

// credentials reads the certificate of the administrator from its Secret.
func (r release) credentials(ctx context.Context, client clients.Interface) (credentials.TransportCredentials, error) {
	name := strings.TrimSuffix(r.service.Name, serviceSuffix) + secretSuffix
	what := fmt.Sprintf("reading Secret %s/%s, the administrator's certificate of release %s", r.namespace(), name, r.name())
	secret, err := client.CoreV1().Secrets(r.namespace()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &Error{codes.NotFound, what + ": it does not exist. With tls.mode=provided make it, with the organization sluice:admin; " +
			"otherwise `helm upgrade` makes it again"}
	case err != nil:
		return nil, refused(err, what, "get secret "+name, r.namespace())
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &Error{codes.FailedPrecondition, what + ": tls.crt and tls.key: " + err.Error()}
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, &Error{codes.FailedPrecondition, what + ": ca.crt holds no certificate in PEM"}
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: authorities, Certificates: []tls.Certificate{pair},
		ServerName: r.service.Name + "." + r.namespace() + ".svc",
	}), nil
}

// readyPod returns a pod of the control plane that serves the API.
func (r release) readyPod(ctx context.Context, client clients.Interface) (*corev1.Pod, error) {
	selector := labels.SelectorFromSet(r.service.Spec.Selector).String()
	what := fmt.Sprintf("looking for a pod of the control plane of release %s", r.name())
	listed, err := client.CoreV1().Pods(r.namespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, refused(err, what, "list pods", r.namespace())
	}
	var states []string
	for i := range listed.Items {
		pod := &listed.Items[i]
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && pod.DeletionTimestamp == nil {
			return pod, nil
		}
		states = append(states, fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase))
	}
	if len(states) == 0 {
		states = []string{"there is none"}
	}
	return nil, &Error{codes.FailedPrecondition, fmt.Sprintf("no pod of the control plane of release %s is ready: %s. "+
		"`kubectl -n %s describe pods -l %s` shows why", r.name(), strings.Join(states, ", "), r.namespace(), selector)}
}
