{{- /* sluice.storageClass: (list . class): a StorageClass of csi.storageClass, or of an element of csi.storageClasses */}}
{{- define "sluice.storageClass" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {{ .name }}
  labels: {{- include "sluice.labels" (list $root "csi") | nindent 4 }}
  annotations: {storageclass.kubernetes.io/is-default-class: {{ .isDefault | default false | quote }}}
provisioner: csi.sluice.dev
parameters:
  {{- with .pool }}
  pool: {{ . }}
  {{- end }}
  {{- with .poolSelector }}
  poolSelector: {{ . | quote }}
  {{- end }}
  {{- with .target }}
  target: {{ . }}
  {{- end }}
  csi.storage.k8s.io/fstype: {{ .fsType | default "ext4" }}
  {{- with .chapSecret }}
  {{- $secret := . }}
  {{- range $call := list "controller-publish" "node-stage" }}
  csi.storage.k8s.io/{{ $call }}-secret-name: {{ $secret }}
  csi.storage.k8s.io/{{ $call }}-secret-namespace: {{ $root.Release.Namespace }}
  {{- end }}
  {{- end }}
  {{- with .parameters }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
reclaimPolicy: {{ .reclaimPolicy | default "Delete" }}
allowVolumeExpansion: true
# A node's own pool has to be there where the pod runs.
volumeBindingMode: WaitForFirstConsumer
{{- end }}
{{- end }}
