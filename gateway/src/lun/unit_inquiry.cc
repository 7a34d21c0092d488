// What a unit says about itself, as the builders in scsi/ want it.
#include <algorithm>

#include "lun/copies/third_party.h"
#include "lun/exports.h"
#include "lun/unit.h"

namespace sluice::lun {

scsi::Identity Unit::scsi_identity() const {
  scsi::Identity identity;
  identity.uuid = identity_.uuid;
  identity.serial = identity_.serial;
  identity.product = identity_.product;
  identity.oui = identity_.oui;
  return identity;
}

scsi::Geometry Unit::geometry() const {
  scsi::Geometry g;
  g.blocks = std::max<uint64_t>(blocks(), 1);
  g.block_size = identity_.block_size;
  g.physical_block_size = std::max(identity_.physical_block_size, identity_.block_size);
  return g;
}

scsi::Provisioning Unit::provisioning() const { return provisioning_of(backend_->info()); }

scsi::Provisioning Unit::provisioning_of(const backend::Info& info) const {
  scsi::Provisioning p;
  p.thin = info.thin;
  p.unmap = support_.unmap;
  p.write_same_unmap = support_.unmap;
  p.reads_zeros = info.thin && info.discard_zeroes;
  return p;
}

scsi::InquiryUnit Unit::inquiry(const Nexus& nexus) const {
  scsi::InquiryUnit unit;
  unit.identity = scsi_identity();
  unit.port.target_name = nexus.target().iqn();
  unit.port.portal_group = nexus.id().target_portal_group;
  unit.port.relative_target_port = nexus.id().relative_target_port;
  unit.port.target_port_group = nexus.target().target_port_group();
  unit.copy = copy_limits(*this);
  unit.volatile_cache = true;  // MODE SELECT can turn it on
  const std::lock_guard lock(mutex_);
  unit.support = support_;
  unit.limits = limits_;
  unit.characteristics.rotational = backend_->info().rotational;
  unit.provisioning = provisioning_of(backend_->info());
  return unit;
}

}  // namespace sluice::lun
