package model

// VolumeLocation is the location of a volume's data: a path below its local pool's directory, or the name of an RBD image. It
// contains the uid, so a volume never finds the data of an earlier volume of the same name (R13).
func VolumeLocation(v *Volume) string { return "volume-" + v.Meta.UID }

// SnapshotLocation is the location of a snapshot's data.
func SnapshotLocation(x *Snapshot) string { return "snapshot-" + x.Meta.UID }
