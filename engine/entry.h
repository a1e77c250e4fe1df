#pragma once

// The only door between the ptrain command and its engine: a C function in libptrain_engine.so,
// which `ptrain worker` opens by absolute path beside the binary.

#ifdef __cplusplus
extern "C" {
#endif

#define PTRAIN_ENGINE_MAIN "ptrain_engine_main"

// Runs one rank from the request (JSON, core/run/request.h) to its end and returns a ptrain exit
// code. build_id: that of the calling binary; another than the module's own is refused (exit code
// 3).
typedef int (*ptrain_engine_main_t)(const char* build_id, const char* request_json);

#ifdef __cplusplus
}
#endif
