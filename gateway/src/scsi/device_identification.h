// VPD page 83h (SPC-5 §7.7.6): every name the unit, its port and its target go by.
#pragma once

#include "base/bytes.h"
#include "scsi/identity.h"

namespace sluice::scsi {

// `with_unit` false: only the target's and port's designators (well-known logical units).
size_t build_device_identification(uint8_t peripheral, const Identity& identity,
                                   const PortIdentity& port, bool with_unit, MutableBytes out);

}  // namespace sluice::scsi
