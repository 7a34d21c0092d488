package main

import (
	"context"
	"strings"
	"testing"
)

const shopFiles = `
apiVersion: sluice.dev/v1alpha1
kind: Volume
metadata: {name: logs, labels: {app: shop}}
spec: {pool: nvme, size: 1Gi}
---
apiVersion: sluice.dev/v1alpha1
kind: Target
metadata: {name: shop, labels: {app: shop}}
spec: {gatewayPool: default, luns: [{id: 0, volume: logs}]}
`

func TestDiffShowsWhatApplyWouldChange(t *testing.T) {
	l := start(t)
	l.prerequisites()
	files := file(t, shopFiles)
	before := l.revision()
	out, err := l.run("diff", "-f", files)
	if exitCode(err) != exitDiffer || reported(err) != "" ||
		!holdsAll(out, []string{"--- control-plane/volume/logs\n+++ files/volume/logs\n", "+  size: 1Gi\n", "+  blockSize: 512\n", "+  - id: 0\n"}) {
		t.Errorf("%v: %s", err, out)
	}
	if after := l.revision(); after != before {
		t.Errorf("something was stored: revision %d, it was %d", after, before)
	}
	l.must("apply", "-f", files)
	if out := l.must("diff", "-f", files); out != "" {
		t.Errorf("after apply: %s", out)
	}
	if out := l.must("diff", "-f", file(t, l.must("volume", "list", "-o", "yaml"))); out != "" {
		t.Errorf("of printed objects: %s", out)
	}
	out, err = l.run("diff", "-f", file(t, strings.Replace(shopFiles, "size: 1Gi", "size: 2Gi", 1)))
	if exitCode(err) != exitDiffer || !strings.Contains(out, "\n-  size: 1Gi\n+  size: 2Gi\n") || strings.Contains(out, "shop\n+++") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDiffDoesNotShowSecrets(t *testing.T) {
	l := start(t)
	files := file(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: secret-of-web-1}\n---\n"+
		"apiVersion: sluice.dev/v1alpha1\nkind: Host\nmetadata: {name: web}\nspec: {initiators: [iqn.2026-11.org.example:web], chap: {secretRef: {name: s}}}\n")
	l.must("apply", "-f", files)
	r := l.begin(context.Background(), "diff", "-f", files)
	if err := <-r.ended; err != nil || r.out.String() != "" || r.err.String() != "note: host web: its secret is not compared\n" {
		t.Errorf("%v: %s%s", err, r.out, r.err)
	}
}

func TestErrorsOfDiffHaveACodeAbove1(t *testing.T) {
	l := start(t)
	l.prerequisites()
	for text, code := range map[string]int{
		strings.Replace(shopFiles, "pool: nvme", "pool: none", 1):                exitNotNow,
		strings.Replace(shopFiles, "size: 1Gi", "sise: 1Gi", 1):                  exitUsage,
		strings.Replace(shopFiles, "size: 1Gi", "size: 1Gi, blockSize: 1000", 1): exitUsage,
	} {
		if _, err := l.run("diff", "-f", file(t, text)); exitCode(err) != code {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	r := l.begin(ctx, "diff", "-f", file(t, shopFiles))
	if err := <-r.ended; exitCode(err) != exitDiffFailed || reported(err) == "" {
		t.Errorf("an interrupt: exit code %d: %v", exitCode(err), err)
	}
}
