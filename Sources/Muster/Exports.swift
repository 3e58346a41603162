// What a node hands to its host is made of these modules' types, so that a host that imports
// Muster sees them, and needs to import nothing else.
@_exported import MusterBase
@_exported import MusterChannel
@_exported import MusterCore
@_exported import MusterCrypto
@_exported import MusterDiscovery
@_exported import MusterWire
