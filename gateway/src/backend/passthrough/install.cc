#include "passthrough/install.h"

#include "passthrough/nvme_backend.h"
#include "passthrough/sg_backend.h"

namespace sluice::passthrough {

void install() {
  backend::set_opener("sg", &SgBackend::open);
  backend::set_opener("nvme", &NvmeBackend::open);
}

}  // namespace sluice::passthrough
