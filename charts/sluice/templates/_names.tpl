{{- /* sluice.selector: (list . component) */}}
{{- define "sluice.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: sluice-{{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end }}

{{- /* sluice.labels: (list . component) */}}
{{- define "sluice.labels" -}}
{{- $root := index . 0 }}
{{- include "sluice.selector" . }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{- /* sluice.image: (list . component) */}}
{{- define "sluice.image" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.registry }}{{ . }}/{{ end }}sluice-{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- with index ($root.Values.image.digests | default dict) (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{- define "sluice.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What every pod that is neither a gateway nor on a node's root runs as. */}}
{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* sluice.spread: (list . component): topologySpreadConstraints of its replicas. */}}
{{- define "sluice.spread" -}}
{{- $spread := list }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "sluice.selector" . | fromYaml)) }}
{{- range (index . 0).Values.topologySpread }}
{{- $spread = append $spread (merge (dict) . $selector) }}
{{- end }}
{{- toYaml $spread }}
{{- end }}

{{- /* sluice.apart: (list . component): replicas are on different nodes, if there are more. For spreading, the scheduler leaves
       nodes out of account that lack any of the labels, as a zone's: that alone would do nothing in a cluster without zones. */}}
{{- define "sluice.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "sluice.selector" . | nindent 12 }}
{{- end }}

{{- /* The control plane that runs in the namespace, as JSON; empty where there is none, or no cluster to ask. */}}
{{- define "sluice.running" -}}
{{- lookup "apps/v1" "StatefulSet" .Release.Namespace "sluice-controlplane" | toJson }}
{{- end }}

{{- define "sluice.keySecret" -}}
{{ .Values.controlPlane.keySecret | default "sluice-controlplane-key" }}
{{- end }}

{{- /* Names that the control plane is reached by, as a list in JSON. */}}
{{- define "sluice.serverNames" -}}
{{- $service := printf "sluice-controlplane.%s" .Release.Namespace }}
{{- $peers := printf "sluice-controlplane-peers.%s" .Release.Namespace }}
{{- list "sluice-controlplane" $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service)
         (printf "%s.svc" $peers) (printf "%s.svc.cluster.local" $peers)
         (printf "*.%s.svc" $peers) (printf "*.%s.svc.cluster.local" $peers) "localhost" | toJson }}
{{- end }}

{{- define "sluice.server" -}}
sluice-controlplane.{{ .Release.Namespace }}.svc:7460
{{- end }}

{{- /* Replicas as gateways know them: they try one after the other. The last name is that of all replicas: a gateway that runs
       keeps its arguments, and finds by it those that are added later. */}}
{{- define "sluice.replicas" -}}
{{- $names := list }}
{{- range $i := until (int .Values.controlPlane.replicas) }}
{{- $names = append $names (printf "sluice-controlplane-%d.sluice-controlplane-peers.%s.svc:7460" $i $.Release.Namespace) }}
{{- end }}
{{- join "," (append $names (printf "sluice-controlplane-peers.%s.svc:7460" .Release.Namespace)) }}
{{- end }}

{{- /* sluice.clientArguments: how a client proves itself; its Secret is mounted at /etc/sluice/tls. */}}
{{- define "sluice.clientArguments" -}}
- --server={{ include "sluice.server" . }}
- --tls-ca=/etc/sluice/tls/ca.crt
- --tls-cert=/etc/sluice/tls/tls.crt
- --tls-key=/etc/sluice/tls/tls.key
{{- end }}
