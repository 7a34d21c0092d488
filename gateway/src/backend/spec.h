// The text form of a backend specification, as a command line or a configuration file holds it:
//
//   null:1GiB
//   memory:256MiB,block-size=4096
//   file:/path/disk.img,size=1GiB,io=buffered|direct,create=on|off
//   block:/dev/nvme0n1,write-cache=on|off
//   sg:/dev/sg2,write-cache=on|off
//   nvme:/dev/ng0n1,block-size=4096,write-cache=on|off
//   rbd:pool/image,conf=/etc/ceph/ceph.conf,user=sluice,keyring=/etc/sluice/ceph.keyring
//   rbd:pool/namespace/image,monitors=192.0.2.1;192.0.2.2,user=sluice,keyring=/...
//
// Every kind also accepts size=, block-size=512|4096, write-cache=on|off and read-only=on|off. A
// path can't contain a comma.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/backend.h"
#include "base/result.h"

namespace sluice::backend {

Result<Spec> parse_spec(std::string_view text);

// Whether `path` names a device; a device or a file.
bool is_device(const Spec& spec);
bool is_file_or_device(const Spec& spec);

// The checks that open() and parse_spec() perform on any Spec.
Result<void> validate(const Spec& spec);

}  // namespace sluice::backend
