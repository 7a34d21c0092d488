package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// maxSkew is the tolerated difference of clocks. With more, logs and events of two machines cannot be put in order.
	maxSkew = 5 * time.Second
	// maxNamed bounds the objects and consequences of a finding that are printed.
	maxNamed = 5
)

// findingsOf reads all pages of the findings that a request selects. Errors: Unimplemented from a control plane of an earlier release.
func findingsOf(ctx context.Context, connection *grpc.ClientConn, request *pb.ListFindingsRequest) ([]*pb.Finding, error) {
	var all []*pb.Finding
	request = proto.CloneOf(request)
	for {
		response, err := pb.NewFindingServiceClient(connection).ListFindings(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, response.GetFindings()...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
}

// localFindings returns what only this machine sees: the difference of the clocks, and its own certificates.
func (g *globals) localFindings(seen *controlPlane, now time.Time) []*pb.Finding {
	found := g.certificateFindings(seen, now)
	if ahead := seen.ahead.Abs(); ahead > maxSkew {
		found = append(found, localFinding("ClockSkew", pb.FindingSeverity_FINDING_SEVERITY_WARNING,
			&pb.ObjectReference{Kind: "ControlPlane"}, fmt.Sprintf("its clock differs by %s from this machine's", ahead.Round(time.Second)),
			"have chrony or another NTP client run on both", now))
	}
	return found
}

func localFinding(id string, severity pb.FindingSeverity, object *pb.ObjectReference, cause, remedy string, since time.Time) *pb.Finding {
	return &pb.Finding{Id: id, Severity: severity, Object: object, StartTime: timestamppb.New(since), Cause: cause, Remedy: remedy,
		Link: "docs/RUNBOOK.md#" + strings.ToLower(id), Objects: []*pb.ObjectReference{object}, ObjectCount: 1}
}

// writeFindings prints findings for people.
func writeFindings(to io.Writer, indent string, findings []*pb.Finding) {
	for _, f := range findings {
		_, _ = fmt.Fprintf(to, "%s%s %s: %s: %s\n", indent, severityWord(f.GetSeverity()), f.GetId(), subject(f), f.GetCause())
		_, _ = fmt.Fprintf(to, "%s    remedy: %s; %s\n", indent, f.GetRemedy(), f.GetLink())
		for _, c := range f.GetConsequences()[:min(len(f.GetConsequences()), maxNamed)] {
			_, _ = fmt.Fprintf(to, "%s    so %s: %s\n", indent, objectText(c.GetObject()), c.GetCause())
		}
		if more := int(f.GetConsequenceCount()) - maxNamed; more > 0 {
			_, _ = fmt.Fprintf(to, "%s    and %d more consequences\n", indent, more)
		}
	}
}

func severityWord(severity pb.FindingSeverity) string {
	return strings.ToLower(word(severity, "FINDING_SEVERITY_"))
}

// subject names the objects of a finding.
func subject(f *pb.Finding) string {
	if f.GetObjectCount() <= 1 {
		return objectText(f.GetObject())
	}
	var names []string
	for _, object := range f.GetObjects()[:min(len(f.GetObjects()), maxNamed)] {
		names = append(names, object.GetName())
	}
	text := fmt.Sprintf("%d %ss (%s", f.GetObjectCount(), kindText(f.GetObject().GetKind()), strings.Join(names, ", "))
	if int(f.GetObjectCount()) > len(names) {
		text += ", …"
	}
	return text + ")"
}

// objectText names an object as users type it.
func objectText(object *pb.ObjectReference) string {
	switch object.GetKind() {
	case "ControlPlane":
		return "control plane"
	case "Certificate":
		return "certificate of " + object.GetName()
	}
	return kindText(object.GetKind()) + " " + object.GetName()
}

func kindText(message string) string {
	if k := kindNamed(message); k != nil {
		return k.name
	}
	return strings.ToLower(message)
}

// unusable has the names of the objects of a kind that a permitted host cannot use; nil: the control plane does not tell.
type unusable map[string]bool

func unusableOf(ctx context.Context, connection *grpc.ClientConn, k *kind) (unusable, error) {
	found, err := findingsOf(ctx, connection, &pb.ListFindingsRequest{Kind: k.message, EachObject: true,
		MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_CRITICAL})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented, codes.PermissionDenied:
		return nil, nil
	default:
		return nil, err
	}
	named := unusable{}
	for _, f := range found {
		named[f.GetObject().GetName()] = true
	}
	return named, nil
}

// ready says whether a permitted host can use an object: its condition Ready holds, and no critical finding concerns it.
func (u unusable) ready(k *kind, object proto.Message) string {
	switch {
	case u[metaOf(object).GetName()]:
		return "False"
	case k.ready != nil:
		return k.ready(object)
	case !slices.Contains([]string{"volume", "target", "snapshot", "pool", "gateway"}, k.name):
		return "True"
	}
	return word(conditionOf(conditionsOf(object), "Ready").GetStatus(), "CONDITION_STATUS_")
}
