"""What came to a local OTLP receiver, as plain data."""

from __future__ import annotations

from typing import Any

from recording_server import RecordingServer


def received_spans(server: RecordingServer) -> list[dict[str, Any]]:
    """Give the spans, in order of arrival."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = []
    for request in server.posts("/v1/traces"):
        for group in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            resource = _attributes(group.resource.attributes)
            for span in (span for scope in group.scope_spans for span in scope.spans):
                found.append(
                    {
                        "name": span.name,
                        "trace_id": span.trace_id.hex(),
                        "span_id": span.span_id.hex(),
                        "parent_id": span.parent_span_id.hex(),
                        "kind": span.kind,
                        "start": span.start_time_unix_nano,
                        "end": span.end_time_unix_nano,
                        "attributes": _attributes(span.attributes),
                        "status": (span.status.code, span.status.message),
                        "resource": resource,
                    }
                )
    return found


def received_events(server: RecordingServer) -> list[dict[str, Any]]:
    """Give the log records, in order of arrival."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    found = []
    for request in server.posts("/v1/logs"):
        for group in ExportLogsServiceRequest.FromString(request.body).resource_logs:
            for one in (one for scope in group.scope_logs for one in scope.log_records):
                found.append(
                    {
                        "name": one.event_name,
                        "trace_id": one.trace_id.hex(),
                        "span_id": one.span_id.hex(),
                        "time": one.time_unix_nano,
                        "attributes": _attributes(one.attributes),
                    }
                )
    return found


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
