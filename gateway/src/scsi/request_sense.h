// REQUEST SENSE (SPC-5 §6.39): sense data as parameter data.
#pragma once

#include "base/bytes.h"
#include "scsi/sense.h"

namespace sluice::scsi {

// The DESC bit of the CDB chooses the format here, D_SENSE does not.
size_t build_request_sense(ByteView cdb, const Sense& sense, MutableBytes out);

}  // namespace sluice::scsi
