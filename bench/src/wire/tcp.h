// The few TCP calls both programs make outside of the measured path. All end the program with a
// message when they fail: a measurement that can't start has nothing to clean up.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::bench {

[[noreturn]] void die(const std::string& what);

// Sets TCP_CONGESTION and returns the name in effect. "auto" is cubic, or reno where the kernel
// refuses it; the machine's default may be BBR, which halves large transfers over loopback.
std::string fix_congestion(int fd, const std::string& wanted);

int listen_on(const std::string& address, uint16_t port, const std::string& congestion,
              std::string* in_effect);
int connect_to(const std::string& address, uint16_t port, const std::string& congestion,
               std::string* in_effect);

void send_all(int fd, const void* data, size_t size);
// False when the peer closed before `size` bytes came.
bool receive_all(int fd, void* data, size_t size);

}  // namespace sluice::bench
