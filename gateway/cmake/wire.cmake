# The messages between gateway and control plane, generated from their one source. Debian 12's protoc
# (3.21) doesn't know the option debug_redact, which only advises printers, and nothing here prints
# messages: it is cut off first.
find_package(Protobuf REQUIRED)
# Not pkg-config: it follows each path through the hundreds of modules of Abseil, which takes seconds (Debian 12) or minutes (Debian 13).
# Inline functions of gRPC's headers call gpr and Abseil's Mutex.
find_library(GRPC_LIBRARY grpc++ REQUIRED)
find_library(GPR_LIBRARY gpr REQUIRED)
find_package(absl REQUIRED)
find_program(GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

# sluice_wire(): the library sluice_wire. Generated code answers to none of our warnings.
function(sluice_wire)
  set(source ${PROJECT_SOURCE_DIR}/../proto/sluice/v1/gateway_stream.proto)
  set(tree ${CMAKE_BINARY_DIR}/wire)
  set(stem ${tree}/sluice/v1/gateway_stream)
  add_custom_command(
    OUTPUT ${stem}.pb.cc ${stem}.pb.h ${stem}.grpc.pb.cc ${stem}.grpc.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${tree}/sluice/v1
    COMMAND sed "s/ \\[debug_redact = true\\]//" ${source} > ${stem}.proto
    COMMAND protobuf::protoc -I ${tree} --cpp_out=${tree} --grpc_out=${tree}
            --plugin=protoc-gen-grpc=${GRPC_PLUGIN} ${stem}.proto
    DEPENDS ${source}
    VERBATIM)
  # For those who read the code without building it (make lint).
  add_custom_target(sluice_wire_code DEPENDS ${stem}.pb.h ${stem}.grpc.pb.h)
  add_library(sluice_wire STATIC ${stem}.pb.cc ${stem}.grpc.pb.cc)
  add_dependencies(sluice_wire sluice_wire_code)
  target_compile_options(sluice_wire PRIVATE -w)
  target_include_directories(sluice_wire SYSTEM PUBLIC ${tree})
  target_link_libraries(sluice_wire PUBLIC protobuf::libprotobuf ${GRPC_LIBRARY} ${GPR_LIBRARY} absl::synchronization)
endfunction()
