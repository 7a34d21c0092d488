package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// empty reports whether nothing is on a gateway: it was drained, has never connected, or is declared dead and fenced.
func empty(have *pb.Gateway) bool {
	switch have.GetStatus().GetHealth() {
	case pb.GatewayHealth_GATEWAY_HEALTH_NEW, pb.GatewayHealth_GATEWAY_HEALTH_DRAINED, pb.GatewayHealth_GATEWAY_HEALTH_DEAD:
		return true
	}
	return false
}

// settle drains a gateway that must leave, undrains one that must not, and reports problems of its pod.
func (g *gateways) settle(ctx context.Context, r *v1alpha1.Gateway, have *pb.Gateway) error {
	pod, err := g.pod(ctx, r)
	if err != nil {
		return err
	}
	note(r, pod)
	if r.Status.Pod != "" {
		if err := g.mark(ctx, r, pod, have); err != nil {
			return err
		}
	}
	replaced := pod != nil && outdated(r, pod)
	away := r.Spec.Drain || r.Spec.Maintenance || replaced
	// A drain is ended only once a pod runs again. Before that, the control plane may still have the stream of the process that
	// just ended, and the gateway would seem to serve.
	if away || r.Status.Pod != "" && serves(pod) {
		if err := g.requestDrain(ctx, r, have, away); err != nil {
			return err
		}
	}
	switch {
	case replaced && !empty(have):
		return draining(have, "its pod is replaced")
	case pod == nil || pod.DeletionTimestamp != nil:
		return mirror.Problemf("PodPending", "its pod is being replaced")
	case have.GetStatus().GetHealth() != pb.GatewayHealth_GATEWAY_HEALTH_READY && trouble(pod) != "":
		return mirror.Problemf("PodNotRunning", "pod %s/%s: %s", pod.Namespace, pod.Name, trouble(pod))
	}
	return nil
}

// requestDrain requests a drain, or its end, from the control plane. It repeats the request if the state may be unknown.
func (g *gateways) requestDrain(ctx context.Context, r *v1alpha1.Gateway, have *pb.Gateway, away bool) error {
	health := have.GetStatus().GetHealth()
	drains := health == pb.GatewayHealth_GATEWAY_HEALTH_DRAINING || health == pb.GatewayHealth_GATEWAY_HEALTH_DRAINED
	switch {
	case away && !drains:
		_, err := g.service.DrainGateway(ctx, &pb.DrainGatewayRequest{Name: r.Name})
		return err
	case !away && (drains || health == pb.GatewayHealth_GATEWAY_HEALTH_NEW):
		_, err := g.service.UndrainGateway(ctx, &pb.UndrainGatewayRequest{Name: r.Name})
		return err
	}
	return nil
}

// mark sets a label that shows the disruption budget whether anything is on the pod; if not, the pod may be evicted.
func (g *gateways) mark(ctx context.Context, r *v1alpha1.Gateway, pod *corev1.Pod, have *pb.Gateway) error {
	drained := have.GetStatus().GetHealth() == pb.GatewayHealth_GATEWAY_HEALTH_DRAINED
	if drainBlocked(have) {
		var err error
		if drained, err = g.spare(ctx, r, have); err != nil {
			return err
		}
	}
	if (pod.Labels[v1alpha1.LabelDrained] == "true") == drained {
		return nil
	}
	before := pod.DeepCopy()
	if drained {
		pod.Labels[v1alpha1.LabelDrained] = "true"
	} else {
		delete(pod.Labels, v1alpha1.LabelDrained)
	}
	return client.IgnoreNotFound(g.client.Patch(ctx, pod, client.MergeFrom(before)))
}

// draining returns what a drain waits for, in the control plane's words.
func draining(have *pb.Gateway, why string) error {
	message := "ownership and paths are being moved away"
	if drainBlocked(have) {
		why += " (rollout.ignoreRedundancy of its pool ends the pod regardless; volumes that only this gateway can serve then wait for the new pod)"
	}
	for _, condition := range have.GetStatus().GetConditions() {
		if condition.GetType() == v1alpha1.ConditionProgressing && condition.GetMessage() != "" {
			message = condition.GetMessage()
		}
	}
	return mirror.Problemf("Draining", "%s: %s", why, message)
}

// drainForDeletion drains the gateway before it is deleted.
func (g *gateways) drainForDeletion(ctx context.Context, r *v1alpha1.Gateway, have *pb.Gateway) error {
	if empty(have) {
		return nil
	}
	if err := g.requestDrain(ctx, r, have, true); err != nil {
		return err
	}
	return draining(have, "it is deleted once it is drained")
}

// deleteOwnPod deletes the pod once the gateway was removed from the control plane.
func (g *gateways) deleteOwnPod(ctx context.Context, r *v1alpha1.Gateway) error {
	pod, err := g.pod(ctx, r)
	if err != nil || pod == nil || !owned(pod, r) {
		return err
	}
	if pod.DeletionTimestamp == nil {
		if err := g.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	if left, err := g.pod(ctx, r); err != nil || left == nil {
		return err
	}
	return mirror.Problemf(mirror.ReasonDeleting, "pod %s/%s is ending", pod.Namespace, pod.Name)
}
